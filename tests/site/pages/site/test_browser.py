"""The built site in a browser: search, folds, charts and their addresses, the explorer, the ledger,
print, and readers without scripts."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.repository import STUDIES
from tests.site.pages.site.visit import STUDY, Visit

FOUND = {
    "interleaved": "/studies/method/",
    "v2_warp_per_token": f"/studies/{STUDY}/",
    "pinned": "/studies/pinning/",
    "cudaMemcpyBatchAsync": "/what_to_call/",
    "pcie__read_bytes": "#hardware-counters",
    "page walk": "#page-walk",
    "KV cache": "#kv-cache",
    "vLLM": "/engines/",
    "TLB": "#translation",
}
"""Words, and where one of the first results leads."""
CLICK_SECTIONS = """() => {
  for (const one of document.querySelectorAll("details.hp-section > summary")) one.click();
}"""
"""Opens all sections as a reader does, so that they are printed."""
STEPS = "#chart-steps"
CASE = "rows=2048,pool_mib=188,layout=scattered"


def test_search_finds_named_items_in_a_small_index(visit: Visit, site: Path) -> None:
    assert (site / "search" / "search_index.json").stat().st_size < 2**20
    visit.go("")
    field = visit.page.locator("input.md-search__input")
    field.click()
    for wanted, leads_to in FOUND.items():
        field.clear()
        visit.page.keyboard.type(wanted)
        results = visit.page.locator(".md-search-result__list a")
        expect(results.and_(visit.page.locator(f"[href*='{leads_to}']")).first).to_be_visible()


@pytest.mark.parametrize("width", [700])
def test_print_shows_claims_and_whole_tables(visit: Visit) -> None:
    visit.go(f"studies/{STUDY}/")
    page, shown = visit.page, "visible=true"
    page.evaluate(CLICK_SECTIONS)
    page.locator("details.hp-more").evaluate_all("all => all.forEach(it => { it.open = true; })")
    page.emulate_media(media="print")
    evidence = page.locator("details[data-fragment]:not(.hp-claims > *)")
    assert evidence.count() > 10 and evidence.locator(shown).count() == 0
    tables = page.locator(".md-content .hp-table:not(.hp-data *)")
    assert tables.count() == tables.locator(shown).count() > 2
    too_wide = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).length"
    assert tables.evaluate_all(too_wide) == 0
    assert page.locator(".hp-claims > details > summary").locator(shown).count() > 10
    assert page.locator(".hp-controls").locator(shown).count() == 0


def test_links_open_folds_and_load_the_evidence_in_them(visit: Visit) -> None:
    visit.go(f"studies/{STUDY}/")
    claim = visit.page.locator(f"#{STUDY}-misalignment_is_the_limit")
    expect(claim).to_be_hidden()
    visit.page.evaluate(f"location.hash = '{STUDY}-misalignment_is_the_limit'")
    expect(claim.locator(".hp-table")).to_be_visible()
    assert visit.page.locator("#v0_byte_copy pre").count() == 0
    visit.page.evaluate("location.hash = 'v0_byte_copy'")
    expect(visit.page.locator("#v0_byte_copy pre").last).to_contain_text("#include")


def test_the_source_of_a_variant_leads_to_all_files_of_its_program(site: Path) -> None:
    page = site / "evidence" / STUDY / "v3_loads_first.html"
    links = re.findall(r'href="([^"]*/files/[^"]*)"', page.read_text())
    files = {link.rpartition("/")[2]: (page.parent / link).read_text() for link in links}
    assert {"loads_first.h.html", "workload.py.html"} <= files.keys()
    assert all('class="highlight"' in text for text in files.values())


def test_ledger_is_filtered_and_its_address_has_the_filter(visit: Visit) -> None:
    visit.open("ledger/")
    claims = visit.page.locator(".hp-claims > details")
    everything = claims.count()
    visit.page.locator("select[name=study]").select_option(label=STUDY)
    visit.page.wait_for_url(f"**/ledger/?ledger.study={STUDY}")
    assert 0 < claims.locator("visible=true").count() < everything
    assert visit.page.locator(".md-content h2:visible").count() == 3  # two explain verdicts
    visit.page.locator("select[name=verdict]").select_option(label="does not hold")
    count = visit.page.locator(".hp-ledger").inner_text()
    visit.page.reload()
    expect(visit.page.locator(".hp-ledger")).to_have_text(count)
    visit.open("ledger/?ledger.machine=no-box")
    expect(visit.page.locator(".hp-note")).to_contain_text("machine has no option “no-box”")
    assert visit.page.locator(".hp-claims > details:not([hidden])").count() == everything


def test_selects_change_the_chart_under_a_strict_content_policy(visit: Visit) -> None:
    page = visit.page
    visit.go(f"studies/{STUDY}/")
    figure = page.locator(STEPS)
    expect(figure.get_by_text("A click on a mark shows its samples.")).to_be_visible()
    figure.hover()
    drawn = figure.locator(".hp-live svg").inner_html()
    figure.locator("select").first.select_option(label="other-box")
    visit.wait_for_another(figure, drawn)
    figure.locator("svg [aria-roledescription=bar]").first.hover()
    tooltip = page.locator("#vg-tooltip-element")
    expect(tooltip).to_contain_text("variant")
    assert not {"null", "undefined", "NaN"} & {*tooltip.locator("td.value").all_inner_texts()}
    page.locator("label[title=Dark]").click()
    visit.go("what_to_call/")
    page.wait_for_load_state("networkidle")
    expect(page.locator("body")).to_have_attribute("data-md-color-scheme", "slate")


@pytest.mark.parametrize("missing", ["vega.js", "steps.json"])
def test_the_selects_of_a_chart_that_cannot_be_drawn_show_its_picture(
    browser: Browser, address: str, missing: str
) -> None:
    visit = Visit(browser, address)
    visit.page.route(f"**/{missing}", lambda route: route.abort())
    figure = visit.page.locator(STEPS)
    for query in ("", "?steps.machine=other-box"):
        visit.go(f"studies/{STUDY}/{query}")
        if not query:
            figure.locator("select").first.select_option(label="other-box")
        expect(figure.locator(".hp-note")).to_contain_text("This chart could not be drawn")
        assert figure.locator("select").first.evaluate("s => s.selectedOptions[0].text") == "box"
        expect(figure.locator(".hp-still img")).to_be_visible()
        assert visit.page.url.endswith(query or "/")
    visit.page.close()


def test_choice_is_in_the_address_and_in_the_history(visit: Visit, browser: Browser) -> None:
    visit.open(f"studies/{STUDY}/", STEPS)
    figure = visit.page.locator(STEPS)
    machine = figure.locator("select").first
    before = figure.locator("svg").inner_html()
    machine.select_option(label="other-box")
    visit.page.wait_for_url("**/?steps.machine=other-box#chart-steps")
    visit.wait_for_another(figure, before)
    copied = visit.page.url
    visit.page.go_back()
    visit.page.wait_for_function("s => s.selectedIndex === 0", arg=machine.element_handle())
    anew = Visit(browser, visit.address)
    anew.page.goto(copied)
    expect(anew.page.locator(f"{STEPS} .hp-live svg")).to_be_visible()
    assert anew.page.locator(f"{STEPS} .hp-live [aria-roledescription=bar]").count() > 0
    assert anew.page.locator(f"{STEPS} select").first.input_value() == "other-box"
    assert anew.faults == []
    anew.page.close()
    hostile = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"
    visit.open(f"studies/{STUDY}/?steps.machine={hostile}{STEPS}", STEPS)
    note = figure.locator(".hp-note")
    expect(note).to_contain_text("machine has no option “<img src=x onerror=alert(1)>”")
    assert figure.locator("img").count() == 0


def test_a_chart_is_saved_with_its_choice(visit: Visit) -> None:
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    visit.open(f"studies/{STUDY}/?steps.machine=other-box{STEPS}", STEPS)
    figure = visit.page.locator(STEPS)
    figure.get_by_text("Copy link").click()
    expect(visit.page.locator(".hp-said")).to_have_text("Copied")
    assert visit.page.evaluate("navigator.clipboard.readText()") == visit.page.url
    with visit.page.expect_download() as download:
        figure.get_by_text("CSV", exact=True).click()
    assert download.value.suggested_filename.startswith(f"{STUDY}-steps-machine=other-box-")
    content = download.value.path().read_bytes()
    assert content.startswith(b"machine,variant,")
    assert b"\nother-box," in content and b"\nbox," not in content
    figure.locator(".hp-data summary").click()
    expect(figure.locator(".hp-data tbody tr")).to_have_count(content.count(b"\n") - 1)


def test_a_mark_leads_to_its_samples_and_these_to_the_explorer(visit: Visit, address: str) -> None:
    page = visit.page
    page.goto(f"{address}studies/method/?agreement.machine=box#chart-agreement")
    marks = page.locator("#chart-agreement .hp-live [aria-roledescription=point]")
    expect(marks.first).to_be_visible()
    label = marks.last.get_attribute("aria-label")
    marks.last.click()
    page.wait_for_url(f"{address}data/?samples.case=*")
    asked = parse_qs(urlsplit(page.url).query)
    (case,) = asked["samples.case"]
    assert label is not None and f"case: {case};" in f"{label};"
    for key in ("case", "metric"):
        chosen = page.locator(f".hp-samples select[name={key}]")
        expect(chosen).to_have_value(asked[f"samples.{key}"][0])
    query = f"samples.case={CASE}&samples.metric=host_time"
    page.goto(f"{address}data/?{query}#box-pool_gather-loads_first")
    page.get_by_role("link", name="Other cases in the explorer").click()
    expect(page.locator(".hp-explorer .hp-live svg")).to_be_visible()
    expect(page.locator(".hp-explorer .hp-note")).to_be_empty()
    expect(page.locator("select[name=study]")).to_have_value("Gather from a large pool")
    axis = page.locator("select[name=over]").input_value()
    values = dict(pair.split("=") for pair in CASE.split(","))
    for key in values.keys() - {axis}:
        expect(page.locator(f"select[name={key}]")).to_have_value(values[key])


def test_explorer_draws_what_is_chosen_and_its_address_keeps_it(visit: Visit) -> None:
    page = visit.page
    visit.go("explorer/")
    picture = page.locator(".hp-explorer .hp-still img")
    expect(picture).to_be_visible()
    page.get_by_role("button", name="Choose what is drawn").click()
    expect(page.locator(".hp-explorer svg")).to_be_visible()
    expect(picture).to_have_count(0)
    expect(page.locator("select[name=colour]")).to_have_value("layout")
    page.select_option("select[name=study]", label=STUDIES["pool_gather"].title)
    page.wait_for_url("**explorer.study=pool_gather")
    page.select_option("select[name=as]", "rate")
    status = page.locator(".hp-explorer .hp-text")
    expect(status).to_contain_text("GB/s")
    page.select_option("select[name=layout]", "pages_4")
    page.wait_for_url("**explorer.layout=pages_4*")
    shown = status.inner_text()
    page.locator(".hp-explorer .hp-data summary").click()
    rows = page.locator(".hp-explorer .hp-table tbody tr")
    expect(rows.first).to_contain_text("layout=pages_4")
    assert f"Shown: {rows.count()} figures" in shown
    page.reload()
    expect(status).to_have_text(shown)
    page.go_back()
    expect(page.locator("select[name=layout]")).to_have_value("all")  # each has a colour
    visit.go("explorer/?explorer.study=pool_gather&explorer.layout=x")
    expect(page.locator(".hp-explorer .hp-note")).to_contain_text("layout has no option “x”")


def test_thesis_picture_and_doors_fit_on_one_light_screen(visit: Visit) -> None:
    page, requested = visit.page, list[str]()
    page.on("request", lambda request: requested.append(Path(request.url).name))
    visit.go("")
    page.wait_for_load_state("networkidle")
    assert len(requested) > 3 and not {"vega.js", "search_index.json"} & {*requested}
    doors = page.locator(".hp-doors a")
    assert doors.count() == 3 and page.locator(".hp-findings > li").count() <= 5
    for part in ("h1", ".hp-lede", ".hp-hero .hp-still img", ".hp-doors li:last-child a"):
        box = page.locator(part).bounding_box()
        assert box is not None and box["y"] + box["height"] < 900


def test_the_home_page_lists_what_the_results_lack(site: Path) -> None:
    """The made-up machines are not published, so their faults stop no build."""
    home = (site / "index.html").read_text()
    (lines,) = re.findall(r'<ul class="hp-faults">(.*?)</ul>', home)
    assert "<li>box: " in lines
    # The table counts every line, and says what to run.
    assert f">What is missing: {lines.count('<li>')}</h2>" in home
    assert re.search(r"<td>box</td>.*--config machine=box", home)


@pytest.fixture
def without_script(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=False)
    yield context.new_page()
    context.close()


def test_without_scripts_pages_are_whole_with_evidence(without_script: Page, address: str) -> None:
    page = without_script
    page.goto(address)
    expect(page.locator(".hp-hero .hp-still img")).to_be_visible()
    expect(page.locator(".hp-lede")).to_contain_text("GB/s")
    expect(page.locator("footer")).to_contain_text("MIT licence")
    for write_up in (study.write_up for study in STUDIES.values() if study.write_up):
        expect(page.locator("footer")).to_contain_text(write_up.title)
    page.goto(f"{address}studies/{STUDY}/")
    picture = page.locator(f"{STEPS} .hp-still img")
    assert picture.evaluate("img => img.complete && img.naturalWidth > 300")
    pictures = page.locator(".hp-chart .hp-still img").all()
    assert len(pictures) == page.locator(".hp-chart").count() > 1
    notice = page.locator(".md-content noscript").text_content()
    assert notice is not None and "each chart is a picture" in notice
    expect(page.get_by_text("A click on a mark shows its samples.").first).to_be_hidden()
    page.locator("summary:has(#sources)").click()
    page.locator("#v1_vectorized summary a").click()
    page.wait_for_url(lambda url: not url.endswith(f"studies/{STUDY}/"), wait_until="commit")
    expect(page.locator("main pre").last).to_contain_text("#include")
