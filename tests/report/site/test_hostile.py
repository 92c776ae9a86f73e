"""Results of somebody who means harm: the site is built, and nothing of them runs on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from analysis.study import discover
from tests.report.site.conftest import served
from tests.roots import build, make_root, rows_without_value
from tests.store.changes import PAYLOAD, write_whole_machine
from tests.store.mutations import HARMLESS, MUTATIONS
from tests.synthetic import add_run, provenance_of

RECORDER = """
window.ran = [];
window.hit = (number) => window.ran.push(number);
for (const name of ["alert", "confirm", "prompt", "open"]) window[name] = () => window.hit(name);
"""
DANGEROUS = r"""
[...document.querySelectorAll("*")].flatMap(e => [...e.attributes])
  .filter(a => a.name.startsWith("on") || /^\s*javascript:/i.test(a.value)).map(a => a.value)
"""
PAGES = ["", "studies/calls/", "studies/copy/", "ledger/", "machines/", "data/"]
NAMES = [PAYLOAD.replace("/", "|"), "{calls}", "a\nb", "BOX", "box\udcff"]
EVERYTHING = """
{{ chart('timeline', 'Calls.') }}

{{ skipped() }}

{{ metrics('step', 'beyond') }}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A machine for each mutation, one for each bad name, and one where all was skipped."""
    root = make_root(tmp_path_factory.mktemp("hostile"))
    study = discover(root)["calls"]
    results = root / "results"
    for index, mutation in enumerate(MUTATIONS.values()):
        write_whole_machine(results, f"m{index}", study)
        mutation.change(results / f"m{index}")
    for index, name in enumerate(NAMES):
        write_whole_machine(results, f"n{index}", study)
        (results / f"n{index}").rename(results / name)
    write_whole_machine(results, "skipped-box", study)
    for variant in study.variants:
        status = {"python": "failed"}.get(variant.name, "skipped")
        rows = rows_without_value(study, variant, status, PAYLOAD)
        captures = {"timeline": {"status": f"not captured: {PAYLOAD}"}, "ncu": {"status": PAYLOAD}}
        provenance = provenance_of(study, variant) | {"captures": captures}
        (results / "skipped-box" / "calls" / f"{variant.name}.csv").unlink()
        add_run(results, "skipped-box", "calls", variant.name, rows, provenance)
    with (root / "docs" / "studies" / "calls.md").open("a") as page:
        page.write(EVERYTHING)
    return root


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    with served(build(root)) as address:
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.add_init_script(RECORDER)
    yield context.new_page()
    context.close()


def test_all_that_is_wrong_is_left_out(address: str, root: Path) -> None:
    refused = json.loads((root / "build" / "refused.json").read_text())
    assert len(refused) == len(MUTATIONS) - len(HARMLESS) + len(NAMES)


@pytest.mark.parametrize("path", PAGES)
def test_nothing_of_the_results_runs(page: Page, address: str, path: str) -> None:
    page.goto(address + path)
    page.wait_for_load_state("networkidle")
    for link in page.locator(".md-content a[href^='javascript:' i]").all():
        link.dispatch_event("click")
    for mark in page.locator(".hp-view svg :is(.mark-rect path, .mark-text text)").all()[:40]:
        mark.dispatch_event("mousemove")
    assert page.evaluate("window.ran") == []
    assert page.evaluate(DANGEROUS) == []
    content = page.locator(".md-content")
    assert content.locator("script, svg[onload], img").count() == 0


@pytest.mark.parametrize("path", ["", "studies/calls/", "machines/"])
def test_text_of_the_results_is_shown_as_it_is(page: Page, address: str, path: str) -> None:
    page.goto(address + path)
    text = page.locator(".md-content").inner_text()
    if path == "":
        assert NAMES[0] in text
    else:
        # The compiler is shown as Python writes it, with other quotes.
        assert PAYLOAD in text
        assert text.count(PAYLOAD.partition('"')[0]) == text.count("onerror=hit(1)")


def test_a_tooltip_shows_text_as_it_is(page: Page, address: str) -> None:
    page.goto(f"{address}studies/calls/")
    figure = page.locator("#chart-timeline")
    figure.scroll_into_view_if_needed()
    figure.locator("select").first.wait_for()
    label = f"m{list(MUTATIONS).index('event with markup')}"
    figure.locator("select").first.select_option(label=label)
    figure.locator("select").nth(1).select_option(label="kernel")
    figure.locator("svg .mark-rect path").first.hover(force=True)
    expect(page.locator("#vg-tooltip-element")).to_contain_text("<script>hit(2)</script>")
    assert page.evaluate("window.ran") == []
