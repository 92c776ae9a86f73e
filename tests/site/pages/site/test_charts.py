"""Charts of the built site in a browser."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser import Strict, served
from tests.site.pages.site.visit import STUDY, Visit, without_script

SLOWED = 4
"""Factor by which the processor is slowed down."""
LATEST_MS = 2_500
"""Deadline of the first chart on such a processor."""


def chart(name: str) -> str:
    return f"#chart-{name}"


@pytest.fixture
def strict(browser: Browser, site: Path) -> Iterator[Visit]:
    """A page of the site under a strict content policy, which must have no errors."""
    with served(site, Strict) as address:
        visit = Visit(browser, address)
        yield visit
        visit.page.close()
    assert visit.faults == []


def test_selects_change_the_chart_under_a_strict_content_policy(strict: Visit) -> None:
    strict.go(f"studies/{STUDY}/")
    figure = strict.page.locator(chart("steps"))
    figure.hover()
    live = figure.locator(".hp-live svg")
    drawn = live.inner_html()
    figure.locator("select").first.select_option(label="other-box")
    strict.wait_for_another(figure, drawn)
    figure.locator("svg [aria-roledescription=bar]").first.hover()
    expect(strict.page.locator("#vg-tooltip-element")).to_contain_text("variant")
    strict.page.locator("label[title=Dark]").click()
    strict.page.reload()
    expect(strict.page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")


@pytest.mark.parametrize("path", ["", "explorer/", "data/", "what_to_call/"])
def test_a_page_keeps_a_strict_content_policy(strict: Visit, path: str) -> None:
    strict.go(path)
    strict.page.wait_for_load_state("networkidle")
    if path == "explorer/":
        strict.page.get_by_role("button", name="Choose what is drawn").click()
        expect(strict.page.locator(".hp-explorer .hp-live svg")).to_be_visible()
    field = strict.page.locator("input.md-search__input")
    field.click()
    strict.page.keyboard.type("h2d_gather")
    expect(strict.page.locator(".md-search-result__list a").first).to_be_visible()


@pytest.mark.parametrize("missing", ["vega.js", "steps.json"])
def test_the_selects_of_a_chart_that_cannot_be_drawn_show_its_picture(
    browser: Browser, address: str, missing: str
) -> None:
    visit = Visit(browser, address)
    visit.page.route(f"**/{missing}", lambda route: route.abort())
    figure = visit.page.locator(chart("steps"))
    for query in ("", "?steps.machine=other-box"):
        visit.go(f"studies/{STUDY}/{query}")
        if not query:
            figure.locator("select").first.select_option(label="other-box")
        expect(figure.locator(".hp-note")).to_contain_text("This chart could not be drawn")
        assert figure.locator("select").first.evaluate("s => s.selectedOptions[0].text") == "box"
        expect(figure.locator(".hp-still img")).to_be_visible()
        assert visit.page.url.endswith(query or "/")
    visit.page.close()


def test_charts_need_no_script(browser: Browser, address: str) -> None:
    page = without_script(browser, address)
    picture = page.locator(f"{chart('steps')} .hp-still img")
    expect(picture).to_be_visible()
    assert picture.evaluate("img => img.complete && img.naturalWidth > 300")
    pictures = page.locator(".hp-chart .hp-still img").all()
    assert len(pictures) == page.locator(".hp-chart").count() > 1
    for one in pictures:
        drawn = page.request.get(one.evaluate("img => img.src"))
        assert drawn.ok and drawn.text().startswith("<svg ")
    notice = page.locator(".md-content noscript").text_content()
    assert notice is not None and "each chart is a picture" in notice
    expect(page.locator(f"{chart('steps')} .hp-data a")).to_have_count(1)
    page.context.close()


def test_tooltips_have_no_missing_values(visit: Visit) -> None:
    visit.open(f"studies/{STUDY}/", chart("steps"))
    visit.page.locator(f"{chart('steps')} svg [aria-roledescription=bar]").nth(2).hover()
    tooltip = visit.page.locator("#vg-tooltip-element")
    expect(tooltip).to_contain_text("variant")
    assert not {"null", "undefined", "NaN"} & {*tooltip.locator("td.value").all_inner_texts()}


@pytest.mark.exhaustive
def test_first_chart_meets_its_deadline_on_a_slow_processor(browser: Browser, address: str) -> None:
    times = []
    for _ in range(5):
        context = browser.new_context(viewport={"width": 1280, "height": 1700})
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWED})
        page.goto(f"{address}studies/{STUDY}/", wait_until="commit")
        page.wait_for_function("document.querySelector('.hp-still img')?.complete")
        times.append(page.evaluate("performance.now()"))
        context.close()
    assert statistics.median(times) < LATEST_MS, times


@pytest.mark.long  # test_deep_links.py follows a mark of another chart
def test_bar_links_to_its_samples(visit: Visit, address: str) -> None:
    visit.open(f"studies/{STUDY}/", chart("steps"))
    visit.page.locator(f"{chart('steps')} svg [aria-roledescription=bar]").nth(2).click()
    visit.page.wait_for_url(f"{address}data/?samples.case=*#box-{STUDY}-*")
    row = visit.page.locator(f"[id='{visit.page.url.partition('#')[2]}']")
    expect(row.locator("td:nth-child(2) a[href$='.csv']")).to_have_count(1)
    plot = visit.page.locator(".hp-samples svg")
    expect(plot).to_be_visible()
    asked = parse_qs(urlsplit(visit.page.url).query)
    for key in ("case", "metric"):
        (chosen,) = asked[f"samples.{key}"]
        expect(visit.page.locator(f".hp-samples select[name={key}]")).to_have_value(chosen)
    said = visit.page.locator(".hp-samples .hp-text")
    expect(said).to_contain_text(f"{plot.locator('circle').count()} samples of 4 rounds in 1 run")
    visit.page.locator(".hp-samples select[name=case]").select_option(index=1)
    assert parse_qs(urlsplit(visit.page.url).query)["samples.case"] != asked["samples.case"]
    row.get_by_role("button", name="Plot").click()
    expect(plot).to_have_count(0)


@pytest.mark.long  # test_deep_links.py follows one to a chart
def test_following_a_link_draws_the_charts(visit: Visit, address: str) -> None:
    visit.open("")
    visit.page.locator(f".md-content a[href$='studies/{STUDY}/']").first.click()
    visit.page.wait_for_url(f"{address}studies/{STUDY}/")
    visit.settle()
    expect(visit.page.locator(".hp-live svg").first).to_be_attached()


def test_choice_is_in_the_address_and_in_the_history(visit: Visit, browser: Browser) -> None:
    visit.open(f"studies/{STUDY}/", chart("steps"))
    figure = visit.page.locator(chart("steps"))
    machine = figure.locator("select").first
    before = figure.locator("svg").inner_html()
    machine.select_option(label="other-box")
    visit.page.wait_for_url("**/?steps.machine=other-box#chart-steps")
    visit.wait_for_another(figure, before)
    other = figure.locator("svg").inner_html()
    copied = visit.page.url
    visit.page.go_back()
    visit.page.wait_for_function("s => s.selectedIndex === 0", arg=machine.element_handle())
    visit.page.go_forward()
    visit.page.wait_for_function("s => s.selectedIndex > 0", arg=machine.element_handle())
    anew = Visit(browser, visit.address)
    anew.page.goto(copied)
    shown = anew.page.locator(f"{chart('steps')} .hp-live svg")
    expect(shown).to_be_visible()
    assert shown.locator("[aria-roledescription=bar]").count() > 0
    assert anew.page.locator(f"{chart('steps')} select").first.input_value() == "other-box"
    assert other != before and anew.faults == []
    anew.page.close()


def test_unknown_choice_in_the_address_is_reported(visit: Visit) -> None:
    hostile = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"
    asked = f"steps.machine={hostile}"
    visit.open(f"studies/{STUDY}/?{asked}#chart-steps", chart("steps"))
    figure = visit.page.locator(chart("steps"))
    note = figure.locator(".hp-note")
    expect(note).to_contain_text("machine has no option “<img src=x onerror=alert(1)>”")
    assert figure.locator("select").first.evaluate("s => s.selectedOptions[0].text") == "box"
    assert figure.locator("img").count() == 0


@pytest.mark.long  # the walk over all pages sees these of every chart
def test_chart_has_a_link_a_picture_and_rows(visit: Visit) -> None:
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.open(f"studies/{STUDY}/?steps.machine=other-box#chart-steps")
    figure = visit.page.locator(chart("steps"))
    figure.get_by_text("Copy link").click()
    expect(visit.page.locator(".hp-said")).to_have_text("Copied")
    assert visit.page.evaluate("navigator.clipboard.readText()") == visit.page.url
    name = f"{STUDY}-steps-machine=other-box-"
    for kind, begins in (("PNG", b"\x89PNG"), ("SVG", b"<svg"), ("CSV", b"machine,variant,")):
        with visit.page.expect_download() as download:
            figure.get_by_text(kind, exact=True).click()
        assert download.value.suggested_filename.startswith(name)
        content = download.value.path().read_bytes()
        assert content.startswith(begins)
    assert b"\nother-box," in content and b"\nbox," not in content
    figure.locator(".hp-data summary").click()
    expect(figure.locator(".hp-data tbody tr")).to_have_count(content.count(b"\n") - 1)
    assert figure.locator(".hp-data tbody a[href*='#other-box-']").count() > 0


@pytest.mark.parametrize("width", [390])
def test_on_a_narrow_screen_charts_are_not_wider_than_it(visit: Visit) -> None:
    visit.open(f"studies/{STUDY}/")
    boxes = visit.page.locator(".hp-chart .hp-view")
    assert boxes.count() > 1
    for box in boxes.all():
        expect(box.locator("svg")).to_be_visible()
        assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
