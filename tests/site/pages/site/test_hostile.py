"""Malicious results: the site is built, and none of their code runs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, Page, expect

from analysis.study import CAPTURE_KINDS, discover
from tests.browser import served
from tests.results.store.hostile import HARMLESS, MUTATIONS, PAYLOAD, copied, write_whole_machine
from tests.roots import build, make_root, rows_without_value
from tests.site.pages.site.visit import OPEN_SECTIONS, TIMEOUT_MS
from tests.synthetic import set_capture, write_run

RECORDER = """
window.ran = [];
window.hit = (number) => window.ran.push(number);
for (const name of ["alert", "confirm", "prompt", "open"]) window[name] = () => window.hit(name);
"""
DANGEROUS = r"""
[...document.querySelectorAll("*")].flatMap(e => [...e.attributes])
  .filter(a => a.name.startsWith("on") || /^\s*javascript:/i.test(a.value)).map(a => a.value)
"""
PAGES = ["", "studies/calls/", "ledger/", "machines/", "data/", "data/skipped-box/calls/"]
NAMES = [PAYLOAD.replace("/", "|"), "{calls}", "a\nb", "BOX", "box\udcff"]
SHOWN = [one for one in MUTATIONS if one in HARMLESS or re.search(r"[<{\\]|braces|markup", one)]
"""Changes that pages can show: harmless ones, and those whose refusal quotes markup or characters
that cannot be printed. tests/results/store judges all of them."""
EVERYTHING = """
{{ chart('timeline', 'Calls.') }}

{{ evidence() }}

{{ metrics('step', 'beyond') }}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine for each of SHOWN and for each bad name, and one where all was skipped."""
    root = make_root(tmp_path_factory.mktemp("hostile"))
    study = discover(root)["calls"]
    results = root / "results"
    write_whole_machine(root / "whole", "box", study)
    for index, name in enumerate(SHOWN):
        MUTATIONS[name](copied(root / "whole" / "box", results / f"m{index}"))
    for name in NAMES:
        copied(root / "whole" / "box", results / name)
    write_whole_machine(results, "skipped-box", study)
    for variant in study.variants:
        status = {"python": "failed"}.get(variant.name, "skipped")
        rows = rows_without_value(study, variant, status, PAYLOAD)
        write_run(results, "skipped-box", study, rows)
    for kind in CAPTURE_KINDS:
        refused = {"status": f"not captured: {PAYLOAD}"}
        names = dict.fromkeys(study.variant_names, refused)
        set_capture(results, "skipped-box", study, kind, names)
    with (root / "docs" / "studies" / "calls.md").open("a") as page:
        page.write(EVERYTHING)
    return root


@pytest.fixture(scope="module")
def page(browser: Browser, root: Path) -> Iterator[Page]:
    """Its relative addresses are those of the site."""
    with served(build(root)) as address:
        context = browser.new_context(base_url=address)
        context.set_default_timeout(TIMEOUT_MS)
        context.add_init_script(RECORDER)
        yield context.new_page()
        context.close()


@pytest.mark.parametrize("path", PAGES)
def test_text_of_results_is_shown_unchanged_and_does_not_run(page: Page, path: str) -> None:
    response = page.goto(path)
    assert response is not None and response.ok
    page.wait_for_load_state("networkidle")
    for link in page.locator(".md-content a[href^='javascript:' i]").all():
        link.dispatch_event("click")
    for mark in page.locator(".hp-live svg :is(.mark-rect path, .mark-text text)").all()[:40]:
        mark.dispatch_event("mousemove")
    assert page.evaluate("window.ran") == []
    assert page.evaluate(DANGEROUS) == []
    content = page.locator("main").first
    assert content.locator("script, svg[onload], img:not(.hp-still img)").count() == 0
    for picture in content.locator(".hp-still img").all():
        drawn = page.request.get(picture.evaluate("img => img.src")).text()
        tags = {one.tag.rpartition("}")[2] for one in ElementTree.fromstring(drawn).iter()}
        assert not tags & {"a", "use", "image", "foreignObject", "style", "script"}
    text = content.text_content() or ""
    assert path or NAMES[0] in text
    if path in ("studies/calls/", "machines/"):
        # The compiler is shown as Python writes it, with other quotes.
        assert PAYLOAD in text
        assert text.count(PAYLOAD.partition('"')[0]) == text.count("onerror=hit(1)")


def test_invalid_results_are_left_out(page: Page, root: Path) -> None:
    named = json.loads((root / "build" / "refused.json").read_text())
    refused = {name.partition("/")[0] for name in named}
    wrong = {f"m{index}" for index, name in enumerate(SHOWN) if name not in HARMLESS}
    assert wrong <= refused and len(refused - wrong) == len(NAMES)


def test_tooltip_shows_text_unchanged(page: Page) -> None:
    page.goto("studies/calls/")
    page.evaluate(OPEN_SECTIONS)
    figure = page.locator("#chart-timeline")
    figure.scroll_into_view_if_needed()
    figure.locator("select").first.wait_for()
    names = [name.startswith("timeline.csv 2/name") for name in SHOWN]
    figure.locator("select").first.select_option(label=f"m{names.index(True)}")
    figure.locator(".hp-live svg .mark-rect path[aria-label*='hit(2)']").first.hover(force=True)
    expect(page.locator("#vg-tooltip-element")).to_contain_text("<script>hit(2)</script>")
    assert page.evaluate("window.ran") == []
