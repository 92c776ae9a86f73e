"""Behaviour of the built site in a browser."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, expect

from analysis.base.quantities import digits, percent, quantity, ratio, whole
from tests.repository import STUDIES
from tests.site.pages.site.walk import OPEN_SECTIONS, TIMEOUT_MS

STUDY = "h2d_gather"
FOUND = {
    "interleaved": "/studies/method/",
    "v2_warp_per_token": "#v2_warp_per_token",
    "misalignment_is_the_limit": f"#{STUDY}-misalignment_is_the_limit",
    "best kernel as far below the limit": f"#{STUDY}-distance_to_limit",
    "pcie__read_bytes": "#hardware-counters",
    "page walk": "#page-walk",
    "KV cache": "#kv-cache",
    "vLLM": "#vllm",
    "sglang": "#vllm",
    "GPUDirect": "#gpudirect",
    "TLB": "#translation",
}
"""Words, and where one of the first results leads: to a page, a variant, a claim by its id and by
its words, a counter as the profiler calls it, and a term."""
CLICK_SECTIONS = """() => {
  for (const one of document.querySelectorAll("details.hp-section > summary")) one.click();
}"""
"""Opens all sections as a reader does, so that they are printed."""
STEPS = STUDIES[STUDY].with_role("step")
SLOWED = 4
"""Factor by which the processor is slowed down."""
LATEST_MS = 2_500
"""Deadline of the first chart on such a processor."""


class Visit:
    """A page and its errors."""

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
        # Leaving a page aborts its last requests.
        if request.failure != "net::ERR_ABORTED":
            self.faults.append(f"{request.url}: {request.failure}")

    def _ours(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"a request to {url}")

    def open(self, path: str) -> None:
        self.page.goto(self.address + path)
        self.settle()

    def settle(self) -> None:
        """Open all sections, touch every chart, and wait until it has an svg of some size."""
        self.page.evaluate(OPEN_SECTIONS)
        for figure in self.page.locator(".hp-chart").all():
            figure.scroll_into_view_if_needed()
            figure.dispatch_event("pointerenter")
            self.page.wait_for_function(
                "figure => {"
                " const drawn = figure.querySelector('.hp-live svg')?.getBoundingClientRect();"
                " return drawn && drawn.width > 100 && drawn.height > 50; }",
                arg=figure.element_handle(),
                timeout=TIMEOUT_MS,
            )

    def wait_for_another(self, figure: Locator, drawn: str) -> None:
        """Wait until the figure is drawn again."""
        self.page.wait_for_function(
            "([figure, drawn]) => {"
            " const svg = figure.querySelector('.hp-live svg');"
            " return svg && svg.innerHTML !== drawn; }",
            arg=[figure.element_handle(), drawn],
            timeout=TIMEOUT_MS,
        )


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


def without_script(browser: Browser, address: str) -> Page:
    """The study's page in a browser that runs no script; the caller closes its context."""
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"{address}studies/{STUDY}/")
    return page


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


def test_a_chart_is_drawn_when_it_is_touched(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    visit.page.goto(f"{address}studies/{STUDY}/")
    visit.page.wait_for_load_state("networkidle")
    figure = visit.page.locator(chart("steps"))
    expect(figure.locator(".hp-still img")).to_be_visible()
    assert "vega.js" not in asked and "steps.wide.svg" in asked
    figure.hover()
    expect(figure.locator(".hp-live svg")).to_be_visible()
    assert "vega.js" in asked and visit.faults == []
    visit.page.context.close()


def test_the_first_select_of_a_reader_is_drawn(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.page.goto(f"{address}studies/{STUDY}/")
    figure = visit.page.locator(chart("steps"))
    figure.locator("select").first.select_option(label="other-box")
    visit.page.wait_for_url("**/?steps.machine=other-box#chart-steps")
    expect(figure.locator(".hp-live svg").get_by_text("other-box", exact=True)).to_have_count(1)
    expect(figure.locator(".hp-live svg").get_by_text("box", exact=True)).to_have_count(0)
    visit.page.context.close()


def test_tooltips_have_no_missing_values(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open(f"studies/{STUDY}/")
    visit.page.locator(f"{chart('steps')} svg [aria-roledescription=bar]").nth(2).hover()
    tooltip = visit.page.locator("#vg-tooltip-element")
    expect(tooltip).to_contain_text("variant")
    assert not {"null", "undefined", "NaN"} & {*tooltip.locator("td.value").all_inner_texts()}
    visit.page.context.close()


def test_the_picture_has_the_place_of_the_chart_and_never_shows_another_choice(
    browser: Browser, address: str
) -> None:
    visit = Visit(browser, address)
    visit.page.route("**/vega.js", lambda route: None)
    figure = visit.page.locator(chart("steps"))
    picture = figure.locator(".hp-still img")
    visit.page.goto(f"{address}studies/{STUDY}/?steps.machine=other-box")
    expect(picture).to_be_hidden()
    visit.page.goto(f"{address}studies/{STUDY}/?cases.machine=other-box")
    expect(picture).to_be_visible()
    visit.page.goto(f"{address}studies/{STUDY}/")
    expect(picture).to_be_visible()
    box, controls = picture.bounding_box(), figure.locator(".hp-controls").bounding_box()
    visit.page.unroute("**/vega.js")
    visit.page.goto(f"{address}studies/{STUDY}/")
    figure.hover()
    expect(figure.locator(".hp-live svg")).to_be_visible()
    visit.page.evaluate("scrollTo(0, 0)")
    drawn = figure.locator(".hp-live svg").bounding_box()
    assert box is not None and drawn is not None
    assert (drawn["x"], drawn["y"]) == (box["x"], box["y"])
    assert drawn["height"] == pytest.approx(box["height"], abs=1)
    assert figure.locator(".hp-controls").bounding_box() == controls
    assert picture.count() == 0
    visit.page.context.close()


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
    expect(figure.locator("svg").get_by_text("box", exact=True)).to_have_count(0)
    assert visit.faults == []
    visit.page.context.close()


def test_bar_links_to_its_samples(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open(f"studies/{STUDY}/")
    visit.page.locator(f"{chart('steps')} svg [aria-roledescription=bar]").nth(2).click()
    visit.page.wait_for_url(f"{address}data/?samples.case=*#box-{STUDY}-*")
    row = visit.page.locator(f"[id='{visit.page.url.partition('#')[2]}']")
    expect(row.get_by_role("link", name="csv")).to_have_count(1)
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
    assert visit.faults == []
    visit.page.context.close()


def test_following_a_link_draws_the_charts(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open("")
    visit.page.locator(f".md-content a[href$='studies/{STUDY}/']").first.click()
    visit.page.wait_for_url(f"{address}studies/{STUDY}/")
    visit.settle()
    expect(visit.page.locator(".hp-live svg").first).to_be_attached()
    assert visit.faults == []
    visit.page.context.close()


def test_search_finds_named_items_and_links_to_them(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    asked: list[str] = []
    visit.page.on("request", lambda request: asked.append(request.url))
    visit.open("")
    visit.page.wait_for_load_state("networkidle")
    assert not [url for url in asked if "search_index" in url], "before search is opened"
    field = visit.page.locator("input.md-search__input")
    field.click()
    for wanted, leads_to in FOUND.items():
        field.clear()
        visit.page.keyboard.type(wanted)
        results = visit.page.locator(".md-search-result__list a")
        expect(results.and_(visit.page.locator(f"[href*='{leads_to}']")).first).to_be_visible()
    assert visit.faults == []
    visit.page.context.close()


def test_choice_is_in_the_address_and_in_the_history(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open(f"studies/{STUDY}/")
    figure = visit.page.locator(chart("steps"))
    machine = figure.locator("select").first
    machine.select_option(label="other-box")
    visit.page.wait_for_url("**/?steps.machine=other-box#chart-steps")
    copied = visit.page.url
    visit.page.go_back()
    visit.page.wait_for_function("s => s.selectedIndex === 0", arg=machine.element_handle())
    visit.page.go_forward()
    visit.page.wait_for_function("s => s.selectedIndex > 0", arg=machine.element_handle())
    visit.page.reload()
    figure.scroll_into_view_if_needed()
    expect(figure.locator("svg").get_by_text("other-box", exact=True)).to_have_count(1)
    anew = Visit(browser, address)
    anew.page.goto(copied)
    shown = anew.page.locator(chart("steps"))
    expect(shown.locator("svg").get_by_text("other-box", exact=True)).to_have_count(1)
    expect(shown.locator("svg").get_by_text("box", exact=True)).to_have_count(0)
    expect(shown.locator(".hp-text")).to_contain_text("1 machine;")
    assert visit.faults == anew.faults == []
    visit.page.context.close()
    anew.page.context.close()


def test_unknown_choice_in_the_address_is_reported(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    hostile = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"
    visit.open(f"studies/{STUDY}/?steps.machine={hostile}&steps.colour=red#chart-steps")
    figure = visit.page.locator(chart("steps"))
    note = figure.locator(".hp-note")
    expect(note).to_contain_text("machine has no option “<img src=x onerror=alert(1)>”")
    expect(note).to_contain_text("There is no select “colour”.")
    assert figure.locator("select").first.evaluate("s => s.selectedOptions[0].text") == "all"
    assert figure.locator("img").count() == 0
    assert visit.faults == []
    visit.page.context.close()


def test_chart_has_a_link_a_picture_and_rows(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.open(f"studies/{STUDY}/?steps.machine=other-box#chart-steps")
    figure = visit.page.locator(chart("steps"))
    figure.get_by_text("Copy link").click()
    expect(visit.page.locator(".hp-said")).to_have_text("Copied")
    assert visit.page.evaluate("navigator.clipboard.readText()") == visit.page.url
    name = f"{STUDY}-steps-machine=other-box"
    for kind, begins in (("PNG", b"\x89PNG"), ("SVG", b"<svg"), ("CSV", b"machine,variant,")):
        with visit.page.expect_download() as download:
            figure.get_by_text(kind, exact=True).click()
        assert download.value.suggested_filename == f"{name}.{kind.lower()}"
        content = download.value.path().read_bytes()
        assert content.startswith(begins)
    assert b"\nother-box," in content and b"\nbox," not in content
    figure.locator(".hp-data summary").click()
    expect(figure.locator(".hp-data tbody tr")).to_have_count(content.count(b"\n") - 1)
    assert figure.locator(".hp-data tbody a[href*='#other-box-']").count() > 0
    visit.page.context.close()


def test_on_a_narrow_screen_charts_are_not_wider_than_it(browser: Browser, address: str) -> None:
    visit = Visit(browser, address, width=390)
    visit.open(f"studies/{STUDY}/")
    boxes = visit.page.locator(".hp-scroll")
    assert boxes.count() > 1
    for box in boxes.all():
        expect(box.locator("svg")).to_be_visible()
        assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    visit.page.context.close()


def test_evidence_of_a_claim_fits_on_a_narrow_screen(browser: Browser, address: str) -> None:
    visit = Visit(browser, address, width=390)
    visit.open(f"studies/{STUDY}/")
    for claim in visit.page.locator(".hp-claims > details").all()[:4]:
        claim.locator("summary").first.click()
        evidence = claim.locator(".hp-table")
        expect(evidence).to_be_visible()
        assert evidence.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    assert visit.page.locator(".hp-claims .hp-table").count() > 2
    visit.page.context.close()


def test_tables_of_rates_fit_on_a_narrow_screen(browser: Browser, address: str) -> None:
    visit = Visit(browser, address, width=390)
    visit.open("studies/pool_gather/")
    rates = visit.page.locator(".hp-table:has(caption:text('GB/s of payload'))")
    expect(rates.locator("th").last).to_contain_text("40,960")
    assert rates.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    visit.page.context.close()


def test_print_shows_claims_and_whole_tables(browser: Browser, address: str) -> None:
    visit = Visit(browser, address, width=700)
    visit.page.emulate_media(media="print")
    visit.open(f"ledger/#{STUDY}-vector_loads")
    claims = visit.page.locator(f".hp-claims > details[data-study={STUDY}] > summary")
    assert claims.locator("visible=true").count() > 10
    assert visit.page.locator(".hp-controls").locator("visible=true").count() == 0
    assert visit.faults == []
    visit.page.context.close()
    visit = Visit(browser, address, width=700)
    visit.page.goto(f"{address}studies/{STUDY}/")
    visit.page.evaluate(CLICK_SECTIONS)
    open_figures = "figures => { for (const one of figures) one.open = true; }"
    visit.page.locator("details.hp-more").evaluate_all(open_figures)
    visit.page.emulate_media(media="print")
    assert visit.page.locator("details[data-fragment]:not(.hp-claims > *)").count() > 10
    shown = visit.page.locator("details[data-fragment]").locator("visible=true")
    assert (
        shown.count() == visit.page.locator(".hp-claims > details").locator("visible=true").count()
    )
    expect(visit.page.locator("#chart-cases")).to_be_visible()
    tables = visit.page.locator(".hp-table").locator("visible=true")
    too_wide = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).length"
    assert tables.count() > 10 and tables.evaluate_all(too_wide) == 0
    assert visit.faults == []
    visit.page.context.close()


def test_link_opens_all_folds_around_its_target(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.page.goto(f"{address}studies/{STUDY}/")
    claim = visit.page.locator(f"#{STUDY}-misalignment_is_the_limit")
    expect(claim).to_be_hidden()
    visit.page.evaluate(f"location.hash = '{STUDY}-misalignment_is_the_limit'")
    expect(claim.locator(".hp-table")).to_be_visible()
    visit.page.context.close()


def test_links_to_former_names_lead_to_those_of_today(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open("studies/allocator/#seed_p1")
    visit.page.wait_for_url("**/studies/allocator/#published_p1")
    visit.page.context.close()


def test_evidence_is_loaded_when_it_is_opened(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open(f"studies/{STUDY}/#v1_vectorized-source")
    fold = visit.page.locator("#v1_vectorized-source")
    expect(fold.locator("pre")).to_contain_text("#include")
    assert visit.page.locator("#v0_byte_copy-source pre").count() == 0
    visit.page.locator("#v0_byte_copy-source summary").click()
    expect(visit.page.locator("#v0_byte_copy-source pre")).to_contain_text("#include")
    assert visit.faults == []
    visit.page.context.close()


def test_without_a_script_evidence_is_a_link_away(browser: Browser, address: str) -> None:
    page = without_script(browser, address)
    page.locator("summary:has(> #v1_vectorized)").click()
    page.locator("#v1_vectorized-source summary a").click()
    page.wait_for_url(lambda url: not url.endswith(f"studies/{STUDY}/"), wait_until="commit")
    expect(page.locator("main pre")).to_contain_text("#include")
    page.context.close()


def test_ledger_is_filtered_and_its_address_has_the_filter(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.open("ledger/")
    claims = visit.page.locator(".hp-claims > details")
    everything = claims.count()
    visit.page.locator("select[name=study]").select_option(label=STUDY)
    visit.page.wait_for_url(f"**/ledger/?ledger.study={STUDY}")
    shown = claims.locator("visible=true")
    assert 0 < shown.count() < everything
    headings = visit.page.locator(".md-content h2:visible")
    assert headings.count() == 3  # two explain verdicts
    visit.page.locator("select[name=verdict]").select_option(label="does not hold")
    count = visit.page.locator(".hp-ledger").inner_text()
    visit.page.reload()
    expect(visit.page.locator(".hp-ledger")).to_have_text(count)
    visit.open("ledger/?ledger.machine=no-box")
    expect(visit.page.locator(".hp-note")).to_contain_text("machine has no option “no-box”")
    assert visit.page.locator(".hp-claims > details:not([hidden])").count() == everything
    assert visit.faults == []
    visit.page.context.close()


VALUES = [0.0, 1.0, 0.4796, 12.3456, 999.96, 55_300.0, 1.02, 0.95, 3e-10, 2.5e-7, 0.0123, 41.0]
WRITERS: dict[str, Callable[[float], str]] = {
    "seconds": lambda value: quantity(value, "s"),
    "digits": digits,
    "ratio": ratio,
    "whole": whole,
    "percent": percent,
}


def test_the_browser_writes_numbers_as_the_pages_do(browser: Browser, address: str) -> None:
    visit = Visit(browser, address)
    visit.page.goto(f"{address}ledger/")
    written = visit.page.evaluate(
        "async ([kinds, values]) => {"
        " const {write} = await import(new URL('../assets/figures.js', location.href));"
        " return kinds.map(kind => values.map(value => write(value, kind))); }",
        [list(WRITERS), VALUES],
    )
    expected = [[write(value) for value in VALUES] for write in WRITERS.values()]
    assert dict(zip(WRITERS, written, strict=True)) == dict(zip(WRITERS, expected, strict=True))
    visit.page.context.close()
