"""Search, folds, evidence, the ledger and print in a browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, expect

from analysis.base.quantities import digits, percent, quantity, ratio, whole
from tests.site.pages.site.visit import STUDY, Visit, without_script

FOUND = {
    "interleaved": "/studies/method/",
    "v2_warp_per_token": f"/studies/{STUDY}/",
    "pinned": "/studies/pinning/",
    "cudaMemcpyBatchAsync": "/what_to_call/",
    "pcie__read_bytes": "#hardware-counters",
    "page walk": "#page-walk",
    "KV cache": "#kv-cache",
    "vLLM": "/engines/",
    "sglang": "/engines/",
    "TLB": "#translation",
}
"""Words, and where one of the first results leads: to a page, by its words or those of a variant or
a call, to a counter as the profiler calls it, and to a term."""
CLICK_SECTIONS = """() => {
  for (const one of document.querySelectorAll("details.hp-section > summary")) one.click();
}"""
"""Opens all sections as a reader does, so that they are printed."""


def test_search_finds_named_items_and_links_to_them(visit: Visit) -> None:
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


@pytest.mark.long
@pytest.mark.parametrize("width", [390])
def test_evidence_of_a_claim_fits_on_a_narrow_screen(visit: Visit) -> None:
    visit.open(f"studies/{STUDY}/")
    for claim in visit.page.locator(".hp-claims > details").all()[:4]:
        claim.locator("summary").first.click()
        evidence = claim.locator(".hp-table")
        expect(evidence).to_be_visible()
        assert evidence.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    assert visit.page.locator(".hp-claims .hp-table").count() > 2


@pytest.mark.long  # the walk over all pages finds tables that are too wide
@pytest.mark.parametrize("width", [390])
def test_tables_of_rates_fit_on_a_narrow_screen(visit: Visit) -> None:
    visit.open("studies/pool_gather/")
    rates = visit.page.locator(".hp-table:has(caption:text('GB/s of payload'))")
    expect(rates.locator("th").last).to_contain_text("40,960")
    assert rates.evaluate("box => box.scrollWidth - box.clientWidth") <= 0


@pytest.mark.parametrize("width", [700])
def test_print_shows_claims(visit: Visit) -> None:
    visit.page.emulate_media(media="print")
    visit.open(f"ledger/#{STUDY}-vector_loads")
    claims = visit.page.locator(f".hp-claims > details[data-study={STUDY}] > summary")
    assert claims.locator("visible=true").count() > 10
    assert visit.page.locator(".hp-controls").locator("visible=true").count() == 0


@pytest.mark.parametrize("width", [700])
def test_print_shows_whole_tables(visit: Visit) -> None:
    visit.go(f"studies/{STUDY}/")
    visit.page.evaluate(CLICK_SECTIONS)
    open_figures = "figures => { for (const one of figures) one.open = true; }"
    visit.page.locator("details.hp-more").evaluate_all(open_figures)
    visit.page.emulate_media(media="print")
    evidence = visit.page.locator("details[data-fragment]:not(.hp-claims > *)")
    assert evidence.count() > 10 and evidence.locator("visible=true").count() == 0
    expect(visit.page.locator("#chart-cases")).to_be_visible()
    tables = visit.page.locator(".md-content .hp-table:not(.hp-data *)")
    assert tables.count() == tables.locator("visible=true").count() > 2
    too_wide = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).length"
    assert tables.evaluate_all(too_wide) == 0


def test_link_opens_all_folds_around_its_target(visit: Visit) -> None:
    visit.go(f"studies/{STUDY}/")
    claim = visit.page.locator(f"#{STUDY}-misalignment_is_the_limit")
    expect(claim).to_be_hidden()
    visit.page.evaluate(f"location.hash = '{STUDY}-misalignment_is_the_limit'")
    expect(claim.locator(".hp-table")).to_be_visible()


def test_links_to_former_names_lead_to_those_of_today(visit: Visit) -> None:
    visit.open("studies/phases/#seed_p1")
    visit.page.wait_for_url("**/studies/phases/#published_p1")


def test_evidence_is_loaded_when_it_is_opened(visit: Visit) -> None:
    visit.open(f"studies/{STUDY}/#v1_vectorized")
    fold = visit.page.locator("#v1_vectorized")
    expect(fold.locator("pre").last).to_contain_text("#include")
    assert visit.page.locator("#v0_byte_copy pre").count() == 0
    visit.page.locator("#v0_byte_copy summary").click()
    expect(visit.page.locator("#v0_byte_copy pre").last).to_contain_text("#include")


def test_without_a_script_evidence_is_a_link_away(browser: Browser, address: str) -> None:
    page = without_script(browser, address)
    page.locator("summary:has(#sources)").click()
    page.locator("#v1_vectorized summary a").click()
    page.wait_for_url(lambda url: not url.endswith(f"studies/{STUDY}/"), wait_until="commit")
    expect(page.locator("main pre").last).to_contain_text("#include")
    page.context.close()


def test_ledger_is_filtered_and_its_address_has_the_filter(visit: Visit) -> None:
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


VALUES = [0.0, 1.0, 0.4796, 12.3456, 999.96, 55_300.0, 1.02, 0.95, 3e-10, 2.5e-7, 0.0123, 41.0]
WRITERS: dict[str, Callable[[float], str]] = {
    "seconds": lambda value: quantity(value, "s"),
    "digits": digits,
    "ratio": ratio,
    "whole": whole,
    "percent": percent,
}
