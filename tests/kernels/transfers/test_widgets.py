"""The adviser on a page, in a browser and without scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.results.store.samples import read_samples
from analysis.site.charts.widgets import study_widgets
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant
from kernels.transfers.kinds import method_of
from kernels.transfers.widgets import ordered_advisers
from tests.kernels.transfers.machines import WAYS, loop
from tests.kernels.widget_page import opened, require_refused, write_page
from tests.repository import STUDIES
from tests.roots import make_inputs
from tests.synthetic import add_run, provenance_of, write_machine

if TYPE_CHECKING:
    from playwright.sync_api import Page

TRANSFERS = STUDIES["transfers"]


def plausible(variant: Variant, case: Case, metric: str) -> float:
    seconds = WAYS.get(f"pinned_{method_of(variant.name)}", loop)
    return seconds(int(case.values.get("size", 1)), int(case.values.get("count", 1)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the widget, from results of a machine that is made up."""
    root = tmp_path_factory.mktemp("widgets")
    write_machine(root / "results", "box", TRANSFERS, noise=0.01, seconds=plausible)
    facts = StudyFacts(make_inputs(root, {"transfers": TRANSFERS}), TRANSFERS)
    site = root / "site"
    site.mkdir()
    write_page(facts, "adviser", site)
    return site


def test_one_sample_changes_the_advice_and_the_table_of_the_explorer(tmp_path: Path) -> None:
    write_machine(tmp_path / "results", "box", TRANSFERS, noise=0.01, seconds=plausible)

    def published() -> tuple[object, str]:
        facts = StudyFacts(make_inputs(tmp_path, {"transfers": TRANSFERS}), TRANSFERS)
        widget = study_widgets(facts)["adviser"]
        assert widget is not None
        return widget.data, (tmp_path / "build" / "summary.csv").read_text()

    before = published()
    variant = TRANSFERS.variant("pinned_loop")
    path = tmp_path / "results" / "box" / TRANSFERS.name / f"{variant.name}.csv"
    samples = read_samples(path)
    place = next(i for i, one in enumerate(samples) if one.metric == "host_time")
    samples[place] = replace(samples[place], value=100 * (samples[place].value or 0))
    provenance = provenance_of(TRANSFERS, variant)
    add_run(tmp_path / "results", "box", TRANSFERS.name, variant.name, samples, provenance)
    after = published()
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_the_machine_with_most_ways_comes_first(tmp_path: Path) -> None:
    few = [variant for variant in TRANSFERS.variants if "_list_" not in variant.name]
    for run in ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"):
        write_machine(
            tmp_path / "results", "few", TRANSFERS, variants=few, run=run, seconds=plausible
        )
    write_machine(tmp_path / "results", "many", TRANSFERS, seconds=plausible)
    facts = StudyFacts(make_inputs(tmp_path, {"transfers": TRANSFERS}), TRANSFERS)
    assert [one.machine for one in ordered_advisers(facts)] == ["many", "few"]


def test_a_large_pool_is_slower_only_where_it_was_calibrated(folder: Path) -> None:
    (adviser,) = json.loads((folder / "adviser.widget.json").read_text())
    assert adviser["walks"] == [] and adviser["called"] == "box"
    assert not set(adviser["unmeasured"]) & {way["variant"] for way in adviser["ways"]}


def test_the_table_names_the_fastest_ways_of_each_size(folder: Path) -> None:
    table = json.loads((folder / "adviser.table.json").read_text())
    assert table["rows"] and all(len(row) == len(table["columns"]) for row in table["rows"])
    assert all(row[-1].startswith("from 1: pinned_") for row in table["rows"])


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    with opened(folder, "adviser.size=4+KiB&adviser.count=100") as page:
        yield page


@pytest.mark.heavy
def test_the_choice_is_in_the_address(page: Page) -> None:
    assert page.input_value("input[name=size]") == "4 KiB"
    assert page.input_value("input[name=count]") == "100"
    assert "Use pinned_" in page.inner_text(".hp-view p")
    page.select_option("select[name=stream]", "busy")
    page.fill("input[name=count]", "2000")
    address = page.evaluate("location.search")
    assert "adviser.count=2000" in address and "adviser.stream=busy" in address
    page.fill("input[name=count]", "4096")
    assert "adviser.count" not in page.evaluate("location.search")  # the start is left out
    assert page.locator(".hp-table tbody tr").count() > 2


@pytest.mark.heavy
def test_kernels_wait_for_page_walks_of_a_large_pool(page: Page) -> None:
    found = page.evaluate(
        """async () => {
          const { adviseFromPool } = await import(new URL("adviser.js", location.href));
          const cost = { latency_s: 0, sizes: [1024], piece_s: [1e-7], cliff: 0, misfits: [],
            measured_here: 0, error: 0.1, noise: 0.1, byte_s: 0 };
          const way = (variant, piece) => ({ variant, title: variant, memory: "pinned",
            moves: "any", direction: "h2d", host: "scattered", device: "scattered",
            is_busy: false, alignment: 1, costs: { host_time: { ...cost, piece_s: [piece] } } });
          const adviser = { ways: [way("pinned_list_gather", 1e-8), way("pinned_list_loop", 2e-8)],
            entry_bytes: 65536, walks: [[2 ** 30, 0], [2 ** 34, 4e-8]] };
          const job = { size: 1024, count: 1000, direction: "h2d", host: "scattered",
            device: "scattered", is_busy: false, alignment: 128 };
          return [2 ** 29, 2 ** 34].map((pool) =>
            adviseFromPool(adviser, { ...job, pool }, "pinned").map((one) => one.variant)); }"""
    )
    fast, slow = "pinned_list_gather", "pinned_list_loop"
    assert found == [[fast, slow], [slow, fast]]


@pytest.mark.heavy
def test_bad_input_names_the_field_and_what_is_expected(page: Page) -> None:
    expected = "size of a piece: expected bytes such as 4096, 24 KiB or 16 MiB, got “4 KB”."
    require_refused(page, "size", "4 KB", expected)
