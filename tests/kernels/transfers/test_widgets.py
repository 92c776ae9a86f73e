"""The adviser on a page, in a browser and without scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from analysis.site.charts.widgets import study_widgets
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant
from kernels.transfers.kinds import method_of
from kernels.transfers.measured import advisers_of
from kernels.transfers.widgets import ordered_advisers
from tests.kernels.transfers.machines import WAYS, loop
from tests.kernels.widget_page import opened, require_refused, write_page
from tests.repository import STUDIES
from tests.roots import make_inputs
from tests.synthetic import RUN, add_run, files_of, provenance_of, samples_in, write_machine

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TRANSFERS = STUDIES["transfers"]
SOME = [
    TRANSFERS.variant(f"pinned_{name}") for name in ("loop", "packed", "list_loop", "list_gather")
]
"""Variants of an adviser that is soon made."""


def plausible(variant: Variant, case: Case, metric: str) -> float:
    seconds = WAYS.get(f"pinned_{method_of(variant.name)}", loop)
    return seconds(int(case.values.get("size", 1)), int(case.values.get("count", 1)))


def measured_on(
    root: Path, machine: str, variants: Sequence[Variant] = TRANSFERS.variants, run: str = RUN
) -> None:
    """Write results of a made-up machine in the default grid. The full grid has twelve times as
    many cells, and an adviser of all of them takes a minute."""
    write_machine(
        root / "results",
        machine,
        TRANSFERS,
        variants=variants,
        run=run,
        rounds=4,
        seconds=plausible,
        grid="default",
    )


@pytest.fixture(scope="module")
def folder(facts: StudyFacts, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the widget, from results of a machine that is made up."""
    site = tmp_path_factory.mktemp("widgets")
    write_page(facts, "adviser", site)
    return site


def test_one_sample_changes_the_advice_and_the_table_of_the_explorer(tmp_path: Path) -> None:
    measured_on(tmp_path, "box", SOME)

    def published() -> tuple[object, str]:
        facts = StudyFacts(make_inputs(tmp_path, {"transfers": TRANSFERS}), TRANSFERS)
        widget = study_widgets(facts)["adviser"]
        assert widget is not None
        return widget.data, (tmp_path / "build" / "summary.csv").read_text()

    before = published()
    variant = TRANSFERS.variant("pinned_loop")
    (path,) = files_of(tmp_path / "results", "box", TRANSFERS.name)
    samples = samples_in(path, variant.name)
    case = TRANSFERS.headline
    values = {
        i: one.value or 0
        for i, one in enumerate(samples)
        if (one.metric, one.case) == ("host_time", case)
    }
    place = min(values, key=values.__getitem__)  # so that the median changes, too
    samples[place] = replace(samples[place], value=100 * values[place])
    provenance = provenance_of(TRANSFERS, variant)
    add_run(tmp_path / "results", "box", TRANSFERS.name, variant.name, samples, provenance)
    after = published()
    assert all(one != other for one, other in zip(before, after, strict=True))


def test_the_machine_with_most_ways_comes_first(tmp_path: Path) -> None:
    few = [variant for variant in SOME if "_list_" not in variant.name]
    for run in ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"):
        measured_on(tmp_path, "few", few, run)
    measured_on(tmp_path, "many", SOME)
    facts = StudyFacts(make_inputs(tmp_path, {"transfers": TRANSFERS}), TRANSFERS)
    first, second = ordered_advisers(facts)
    assert (first.machine, second.machine) == ("many", "few")
    # Fitted by direction, they are those of all times at once.
    assert [second, first] == advisers_of(TRANSFERS, facts.summary)


def test_without_measured_pools_there_is_no_reach(folder: Path) -> None:
    (adviser,) = json.loads((folder / "adviser.widget.json").read_text())
    assert adviser["reach"] is None and adviser["gathers"] == []
    assert (adviser["called"], adviser["near"]) == ("box", 1.25)
    assert not set(adviser["unmeasured"]) & {way["variant"] for way in adviser["ways"]}


def test_the_table_names_the_fastest_ways_of_each_size(folder: Path) -> None:
    table = json.loads((folder / "adviser.table.json").read_text())
    assert table["rows"] and all(len(row) == len(table["columns"]) for row in table["rows"])
    assert all(row[-1].startswith("from 1: ") for row in table["rows"])
    assert not any("pinned_" in row[-1] for row in table["rows"]), "names of this project"


@pytest.fixture
def page(browser: Browser, folder: Path) -> Iterator[Page]:
    with opened(
        browser, folder, "adviser.size=4+KiB&adviser.count=100&adviser.host=pitched"
    ) as page:
        yield page


@pytest.mark.heavy
def test_the_choice_is_in_the_address(page: Page) -> None:
    assert page.input_value("input[name=size]") == "4 KiB"
    assert page.input_value("input[name=count]") == "100"
    assert page.inner_text(".hp-answer p").startswith("Use ")
    assert "pinned_" not in page.inner_text(".hp-answer"), "names of this project"
    page.select_option("select[name=stream]", "busy")
    page.fill("input[name=count]", "2000")
    address = page.evaluate("location.search")
    assert "adviser.count=2000" in address and "adviser.stream=busy" in address
    page.fill("input[name=count]", "4096")
    assert "adviser.count" not in page.evaluate("location.search")  # the start is left out
    page.fill("input[name=count]", "1,024")  # as this site writes it
    assert page.inner_text(".hp-answer p").startswith("Use ")
    assert page.locator(".hp-table tbody tr").count() > 2


MADE_UP = """
const cost = (piece) => ({ latency_s: 0, sizes: [1024], piece_s: [piece], cliff: 0,
  misfits: [[1024, 16, 0], [1024, 4096, 0]], measured_here: 2, error: 0.1, noise: 0.1, byte_s: 0 });
const way = (variant, piece, memory = "pinned") => ({ variant, title: variant, memory, moves: "any",
  direction: "h2d", host: "scattered", device: "scattered", is_busy: false, alignment: 1,
  costs: { host_time: cost(piece) } });
const gather = way("pinned_list_gather", 1e-8);
const loop = way("pinned_list_loop", 2e-8);
const row = { variant: "both_on_request", size: 656, count: 2048, seconds: 56.8e-6 };
const gathers = [{ ...row, pool: 40 * 2 ** 30 }, { ...row, pool: 2 ** 32, seconds: 5e-5 }];
const known = { machine: "known", called: "Known", ways: [gather, loop], near: 1.25, reach: 2 ** 30,
  gathers, unmeasured: [],
  calls: { pinned_list_gather: { words: "our kernel", source: "a\\nb\\n" } } };
"""
"""Two ways, and a machine that knows both, its reach and gathers from large pools."""


def answers(page: Page, advisers: str, asked: str) -> list[str]:
    """The lines of the answer for each query of `asked` on the first of `advisers`."""
    found: list[str] = page.evaluate(
        f"""async () => {{
          const {{ show }} = await import(new URL("adviser.js", location.href));
          {MADE_UP}
          return {asked}.map((values) => {{
            const root = document.createElement("div");
            show(root, {advisers}, "adviser", (form, widget, inputs, update) => {{
              for (const {{ name, start, field }} of inputs) field.value = values[name] ?? start;
              update();
            }});
            const lines = [...root.querySelectorAll(".hp-answer p")];
            return lines.map((one) => one.textContent).join(" | ");
          }});
        }}"""
    )
    return found


@pytest.mark.heavy
def test_a_list_in_a_large_pool_is_left_to_the_study_that_measured_it(page: Page) -> None:
    asked = """[{ size: "656 B", count: "2048", pool: "1 GiB" },
        { size: "656 B", count: "2048", pool: "40 GiB" },
        { size: "656 B", count: "2048", pool: "6 GiB" },
        { size: "656 B", count: "2048", pool: "40 GiB", direction: "d2h" }]"""
    covered, far, between, to_host = answers(page, "[known]", asked)
    assert covered.startswith("Not measured on Known: 2048 × 656 B."), "pieces were of 1 KiB"
    refused = "Not measured on Known: lists in a pool of {}, beyond the 1 GiB that a GPU's"
    assert far == (
        f"{refused.format('40 GiB')} translations cover. | The nearest cell of the study Gather"
        " from a large pool: 2048 × 656 B from 40 GiB in 56.8 µs, by both_on_request."
    )
    assert between.startswith(refused.format("6 GiB")) and "from 4 GiB in 50 µs" in between
    assert to_host.endswith("See the study Gather from a large pool.")


@pytest.mark.heavy
def test_without_a_reach_only_a_pool_that_the_pieces_fill_is_answered(page: Page) -> None:
    asked = """[{ size: "1 KiB", count: "1024", pool: "1 MiB" },
        { size: "1 KiB", count: "1024", pool: "2 MiB" }]"""
    filled, larger = answers(page, "[{ ...known, reach: null, gathers: [] }]", asked)
    assert filled.startswith("Use our kernel:")
    assert larger.startswith("Not measured on Known: lists in a pool of 2 MiB. | See the study")


@pytest.mark.heavy
def test_pieces_far_from_all_cells_are_refused(page: Page) -> None:
    asked = """[{ size: "1280 B", count: "4000" }, { size: "1281 B", count: "4000" },
        { size: "1 KiB", count: "5120" }, { size: "1 KiB", count: "5121" },
        { size: "1 KiB", count: "12" }]"""
    found = answers(page, "[known]", asked)
    assert [one.startswith("Use our kernel:") for one in found] == [True, False, True, False, False]
    assert found[1] == (
        "Not measured on Known: 4000 × 1281 B. | The nearest measured cell: 4096 × 1 KiB in 41 µs,"
        " by our kernel (code and samples)."
    )
    assert found[4].startswith(
        "Not measured on Known: 12 × 1 KiB. | The nearest measured cell: 16 ×"
    )


@pytest.mark.heavy
def test_faster_ways_of_another_machine_are_in_the_answer(page: Page) -> None:
    few = """{ ...known, machine: "few", called: "Few", ways: [loop],
               unmeasured: ["pinned_list_gather"] }"""
    none = """{ ...known, machine: "none", called: "None", ways: [],
                unmeasured: ["pinned_list_gather"] }"""
    asked = '[{ size: "1 KiB", count: "1000" }]'
    (found,) = answers(page, f"[{few}, known]", asked)
    assert found.startswith("Faster ways were not measured on Few. On Known, the fastest is our")
    assert "Of the ways measured here, use pinned_list_loop:" in found
    (nothing,) = answers(page, f"[{none}, known]", asked)
    assert nothing.startswith("The ways for such pieces were not measured on None. On Known,")
    (plain,) = answers(page, f"[known, {few}]", asked)
    assert plain.startswith("Use our kernel:")


@pytest.mark.heavy
def test_bad_input_names_the_field_and_what_is_expected(page: Page) -> None:
    expected = "size of a piece: expected bytes such as 4096, 24 KiB or 16 MiB, got “4 KB”."
    require_refused(page, "size", "4 KB", expected)
    page.fill("input[name=size]", "4 KiB")
    expected = "pool on the host: expected bytes with a unit such as 188 MiB or 40 GiB, got “{}”."
    for text in ("200", "40 GB", ""):
        require_refused(page, "pool", text, expected.format(text))
    page.select_option("select[name=host]", "scattered")
    expected = "pool on the host: expected at least 400 KiB, for 100 × 4 KiB, got “200 KiB”."
    require_refused(page, "pool", "200 KiB", expected)
