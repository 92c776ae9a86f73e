"""The built site in a browser: drawn, at any width, in both palettes, and asking nobody else."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, expect

STUDY = "h2d_gather"
PAGES = [
    *("", f"studies/{STUDY}/", "studies/method/", "ledger/", "hardware/", "machines/", "data/"),
    *("contributing/", "architecture/", "workload/", "contract/", "reference/"),
]


class Visit:
    """A page with what went wrong on it."""

    def __init__(self, browser: Browser, address: str, scheme: str = "light", width: int = 1280):
        context = browser.new_context(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        self.address = address
        self.page: Page = context.new_page()
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on(
            "console",
            lambda said: (
                self.faults.append(said.text) if said.type in ("error", "warning") else None
            ),
        )
        self.page.on("requestfailed", self._failed)
        self.page.on("request", lambda request: self._ours(request.url))

    def _failed(self, request: Request) -> None:
        # What a page loads last is aborted when it is left.
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"{request.url}: {request.failure}")

    def _ours(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"a request to {url}")

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)
        self.settle()

    def settle(self) -> None:
        """See every chart and wait until it is drawn: until it has an svg of some size."""
        for figure in self.page.locator(".hp-chart").all():
            figure.scroll_into_view_if_needed()
            self.page.wait_for_function(
                "figure => {"
                " const drawn = figure.querySelector('.hp-view svg')?.getBoundingClientRect();"
                " return drawn && drawn.width > 100 && drawn.height > 50; }",
                arg=figure.element_handle(),
                timeout=10_000,
            )

    def wait_for_another(self, figure: Locator, drawn: str) -> None:
        """Wait until the figure is no longer drawn as it was."""
        self.page.wait_for_function(
            "([figure, drawn]) => {"
            " const svg = figure.querySelector('svg'); return svg && svg.innerHTML !== drawn; }",
            arg=[figure.element_handle(), drawn],
            timeout=10_000,
        )


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_whole(browser: Browser, address: str, scheme: str, width: int) -> None:
    visit = Visit(browser, address, scheme, width)
    for path in PAGES:
        visit.open(path)
        overflow = visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, f"/{path} is {overflow} px wider than the window"
        expected = "slate" if scheme == "dark" else "default"
        assert visit.page.locator("body").get_attribute("data-md-color-scheme") == expected
    assert visit.faults == []
    visit.page.context.close()


def chart(name: str) -> str:
    return f"#chart-{name}"


def test_selects_change_the_chart(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open(f"studies/{STUDY}/")
    figure = visit.page.locator(chart("steps"))
    before = figure.locator("svg").inner_html()
    figure.locator("select").nth(1).select_option(index=0)
    visit.wait_for_another(figure, before)
    figure.locator("select").first.select_option(label="other-box")
    one_machine = figure.locator("svg")
    expect(one_machine.get_by_text("box", exact=True)).to_have_count(0)
    expect(one_machine.get_by_text("other-box", exact=True)).to_have_count(1)
    assert visit.faults == []
    visit.page.context.close()


def test_switching_the_palette_recolours_and_keeps_the_selection(
    browser: Browser, address: str
) -> None:
    visit = Visit(browser, address)
    visit.open(f"studies/{STUDY}/")
    figure = visit.page.locator(chart("steps"))
    figure.scroll_into_view_if_needed()
    figure.locator("select").first.select_option(label="other-box")
    expect(figure.locator("svg").get_by_text("box", exact=True)).to_have_count(0)
    light = figure.locator("svg").inner_html()
    visit.page.locator("label[title=Dark]").click()
    visit.wait_for_another(figure, light)
    visit.settle()
    assert figure.locator("select").first.evaluate("s => s.selectedOptions[0].text") == "other-box"
    assert figure.locator("svg").get_by_text("box", exact=True).count() == 0
    assert visit.faults == []
    visit.page.context.close()


def test_a_bar_leads_to_its_samples(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open(f"studies/{STUDY}/")
    visit.page.locator(f"{chart('steps')} svg [aria-roledescription=bar]").nth(2).click()
    visit.page.wait_for_url(f"{address}data/#box-{STUDY}-*")
    row = visit.page.locator(f"[id='{visit.page.url.partition('#')[2]}']")
    assert row.get_by_role("link", name="csv").count() == 1
    visit.page.context.close()


def test_following_a_link_draws_the_charts(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open("")
    visit.page.locator(f".md-content a[href$='studies/{STUDY}/']").first.click()
    visit.page.wait_for_url(f"{address}studies/{STUDY}/")
    visit.settle()
    assert visit.faults == []
    visit.page.context.close()


def test_charts_have_a_name_and_tables_have_headers(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open(f"studies/{STUDY}/")
    for box in visit.page.locator(".hp-view").all():
        assert box.get_attribute("role") == "img"
        assert box.get_attribute("aria-label")
    headless = visit.page.evaluate(
        "[...document.querySelectorAll('.md-content table')].filter(t => !t.querySelector('th'))"
        ".filter(t => !t.closest('.highlight')).length"
    )
    assert headless == 0
    visit.page.context.close()


def test_links_within_the_site_lead_somewhere(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    targets: set[str] = set()
    for path in PAGES:
        visit.open(path)
        targets |= set(
            visit.page.evaluate("[...document.querySelectorAll('.md-content a')].map(a => a.href)")
        )
    ours = {target.partition("#")[0] for target in targets if target.startswith(address)}
    broken = [target for target in sorted(ours) if not visit.page.request.get(target).ok]
    assert broken == []
    visit.page.context.close()


def test_search_finds_a_word(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    visit.open("")
    visit.page.wait_for_load_state("networkidle")
    assert not [url for url in asked if "search_index" in url], "before search is opened"
    visit.page.locator("input.md-search__input").click()
    visit.page.keyboard.type("interleaved", delay=30)
    result = visit.page.locator(".md-search-result__item").first
    result.wait_for(timeout=10_000)
    assert "method" in result.inner_text().lower()
    assert visit.faults == []
    visit.page.context.close()


def test_site_has_no_address_of_another_host_to_load(address: str, browser: Browser) -> None:
    visit = Visit(browser, address)
    loaded = set()
    for path in PAGES:
        visit.open(path)
        loaded |= set(
            visit.page.evaluate(
                "[...document.querySelectorAll('link[href][rel~=stylesheet],"
                "link[rel~=preconnect],script[src],img[src]')].map(e => e.href ?? e.src)"
            )
        )
    assert all(url.startswith((address, "data:")) for url in loaded if url), loaded
    visit.page.context.close()
