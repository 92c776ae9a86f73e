"""The explorer, the sheet of A4 and the footer in a browser."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.repository import STUDIES
from tests.site.pages.site.conftest import MEASURED

TITLES = {name: STUDIES[name].title for name in MEASURED}


def explored(browser: Browser, address: str) -> Page:
    page = browser.new_page()
    page.goto(address)
    return page


def test_explorer_draws_what_is_chosen_and_its_address_keeps_it(
    browser: Browser, address: str
) -> None:
    page = explored(browser, f"{address}explorer/")
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    picture = page.locator(".hp-explorer .hp-still img")
    expect(picture).to_be_visible()
    expect(page.locator(".hp-explorer svg")).to_have_count(0)
    page.get_by_role("button", name="Choose what is drawn").click()
    expect(page.locator(".hp-explorer svg")).to_be_visible()
    expect(picture).to_have_count(0)
    expect(page.locator("select[name=colour]")).to_have_value("layout")
    page.select_option("select[name=study]", label=TITLES["pool_gather"])
    page.wait_for_url("**explorer.study=pool_gather")
    page.select_option("select[name=as]", "rate")
    status = page.locator(".hp-explorer .hp-text")
    expect(status).to_contain_text("GB/s")
    page.select_option("select[name=layout]", "pages_4")
    page.wait_for_url("**explorer.layout=pages_4*")
    expect(page.locator("select[name=layout]")).to_have_value("pages_4")
    shown = status.inner_text()
    page.locator(".hp-explorer .hp-data summary").click()
    rows = page.locator(".hp-explorer .hp-table tbody tr")
    expect(rows.first).to_contain_text("layout=pages_4")
    assert f"Shown: {rows.count()} figures" in shown
    page.reload()
    expect(status).to_have_text(shown)
    page.go_back()
    expect(page.locator("select[name=layout]")).to_have_value("all")  # each has a colour
    assert faults == []
    assert all(url.startswith(address) for url in requested)
    page.close()


def test_explorer_names_an_option_that_does_not_exist(browser: Browser, address: str) -> None:
    page = explored(browser, f"{address}explorer/?explorer.study=pool_gather&explorer.layout=x")
    expect(page.locator(".hp-explorer .hp-note")).to_contain_text("layout has no option “x”")
    page.close()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        pytest.param("a,b\n1,2\n", [{"a": "1", "b": "2"}], marks=pytest.mark.long),
        pytest.param('a,b\n"1,5",\n', [{"a": "1,5", "b": ""}], marks=pytest.mark.long),
        ('a,b\n"say ""x""",|\n', [{"a": 'say "x"', "b": "|"}]),
        ('a,b\n"1\n,2\n",\n,"3"\n', [{"a": "1\n,2\n", "b": ""}, {"a": "", "b": "3"}]),
        ("a\n1\n\n", [{"a": "1"}, {"a": ""}]),
    ],
)
def test_scripts_read_csv_files(
    browser: Browser, address: str, text: str, rows: list[dict[str, str]]
) -> None:
    page = explored(browser, f"{address}explorer/")
    found = page.evaluate(
        "async (text) => {"
        " const { parseCsv } = await import(new URL('../assets/chart_data.js', location.href));"
        " return parseCsv(text); }",
        text,
    )
    assert found == rows
    page.close()


def test_one_page_is_one_sheet_of_a4(browser: Browser, address: str) -> None:
    page = explored(browser, f"{address}one_page/")
    paper = page.pdf(format="A4", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", paper)) == 1
    page.close()


def test_one_pair_of_machines_is_shown_and_its_address_keeps_it(
    browser: Browser, address: str
) -> None:
    page = explored(browser, f"{address}hardware/?pair=b+and+c")
    first = page.locator(".hp-pair")
    assert first.count() == 1 and first.is_visible(), "a single pair needs no select"
    page.evaluate(
        "async () => {"
        " const other = document.createElement('div');"
        " other.className = 'hp-pair'; other.dataset.pair = 'b and c'; other.hidden = true;"
        " other.textContent = 'The second pair.';"
        " document.querySelector('.hp-pair').after(other);"
        " const { watchPairs } = await import(new URL('../assets/ledger.js', location.href));"
        " watchPairs(); }"
    )
    expect(page.get_by_text("The second pair.")).to_be_visible()
    expect(first.first).to_be_hidden()
    page.select_option("select[name=pair]", index=0)
    expect(first.first).to_be_visible()
    assert "pair=" not in page.url
    page.go_back()
    expect(page.get_by_text("The second pair.")).to_be_visible()
    page.close()
