"""Charts of the transfers study, from synthetic results."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.site.charts.writing import write_chart
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case, Variant
from kernels.transfers.chart_lines import line_points
from kernels.transfers.chart_map import map_table
from kernels.transfers.chart_prices import _after, break_even_table
from kernels.transfers.charts import at_headline, charts
from kernels.transfers.kinds import memory_of, method_of
from tests.charted import shown_charts
from tests.kernels.moves import move
from tests.repository import STUDIES
from tests.roots import drawn_charts, make_inputs
from tests.synthetic import add_run, provenance_of, samples_of, write_machine

TRANSFERS = STUDIES["transfers"]

COPY = {"pageable": 5e9, "write_combined": 48e9, "registered_huge": 50e9, "registered": 49e9}
PRICE = {"allocate_time": 4e-3, "register_time": 2e-3, "write_time": 3e-3, "free_time": 1e-3}


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """Seconds whose lines and break-even counts are known."""
    pieces = int(case.values.get("count", 1))
    per_piece = 2e-6 if method_of(variant.name) == "loop" else 1e-7
    return 8e-6 + pieces * per_piece + case.payload_bytes / COPY.get(memory_of(variant.name), 5e10)


def price(variant: Variant, metric: str) -> float | None:
    kind = memory_of(variant.name)
    if metric == "register_time" and not kind.startswith("registered"):
        return None
    return PRICE[metric] * (1 if kind == "pageable" else 3)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> StudyFacts:
    root = tmp_path_factory.mktemp("charts")
    results = root / "results"
    write_machine(results, "box", TRANSFERS, noise=0.001, seconds=plausible, grid="default")
    for variant in TRANSFERS.variants:
        if not variant.name.endswith("_price"):
            continue
        known = [(m, value) for m in PRICE if (value := price(variant, m)) is not None]
        base = samples_of(TRANSFERS, variant, noise=0.0)
        samples = [
            replace(sample, metric=metric, value=value)
            for sample in base
            if sample.metric == "host_time"
            for metric, value in known
        ]
        add_run(
            results, "box", "transfers", variant.name, samples, provenance_of(TRANSFERS, variant)
        )
    return StudyFacts(make_inputs(root, {"transfers": TRANSFERS}), TRANSFERS)


def test_every_chart_of_the_page_is_drawn(facts: StudyFacts, tmp_path: Path) -> None:
    named = shown_charts(TRANSFERS)
    made = drawn_charts(facts)
    assert named - set(made) == {"timeline"}  # which needs a capture
    for name in named & set(made):
        write_chart(made[name], tmp_path, name)


def test_stale_results_draw_only_the_steps(facts: StudyFacts) -> None:
    stale = facts.inputs.with_tables(summary=facts.inputs.tables["summary"].assign(stale=1))
    made = charts(StudyFacts(stale, TRANSFERS))
    assert [name for name, chart in made.items() if chart is not None] == ["steps"]


def test_the_map_names_the_fastest_measured_way(
    facts: StudyFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And interpolates nothing, which takes longer than all else that is drawn."""
    monkeypatch.setattr("scipy.interpolate.LinearNDInterpolator.__init__", None)
    table = map_table(facts)
    at = table[(table["size"] == 1024) & (table["count"] == 256) & (table["direction"] == "h2d")]
    by_memory = at.set_index("memory")
    assert by_memory.loc["pageable", "fastest"] == "pageable_packed"
    assert by_memory.loc["pinned", "fastest"] != "pinned_loop"
    one = move(1024, 256, "h2d")
    seconds = {
        name: plausible(TRANSFERS.variant(name), one, "host_time")
        for name in ("pageable_packed", "pageable_loop")
    }
    expected = seconds["pageable_loop"] / seconds["pageable_packed"]
    assert float(str(by_memory.loc["pageable", "by"]).rstrip("×")) == pytest.approx(
        expected, rel=0.02
    )


def test_the_map_says_what_is_gained_over_one_copy_per_piece(facts: StudyFacts) -> None:
    def cell(of: StudyFacts) -> dict[str, str]:
        table = map_table(of)
        is_cell = (table["size"] == 1024) & (table["count"] == 256) & (table["direction"] == "h2d")
        return dict(table[is_cell & (table["memory"] == "pinned")].iloc[0])

    one, found = move(1024, 256, "h2d"), cell(facts)
    loop, best = (
        plausible(TRANSFERS.variant(name), one, "host_time")
        for name in ("pinned_loop", found["fastest"])
    )
    assert float(found["loop"].rstrip("×")) == pytest.approx(loop / best, rel=0.02)
    assert found["by"] != found["loop"]
    summary = facts.inputs.tables["summary"]
    faster = summary["median"].where(summary["variant"] != "pinned_loop", 1e-9)
    inputs = facts.inputs.with_tables(summary=summary.assign(median=faster))
    assert cell(StudyFacts(inputs, TRANSFERS))["loop"] == ""


def test_single_pieces_of_the_default_grid_are_on_the_map() -> None:
    ways = Counter(
        (memory_of(variant.name), case["size"])
        for variant in TRANSFERS.with_role("step", "beyond")
        for case in variant.in_grid("default")
        if {**case.values, "size": 1} == {"size": 1, "count": 1, "direction": "h2d"}
        and "host_time" in (case.metrics or ())
    )
    compared = [size for (memory, size), count in ways.items() if memory == "pinned" and count > 1]
    assert len(compared) >= 3


def test_lines_are_fitted_by_kind_direction_and_clock(facts: StudyFacts) -> None:
    points = line_points(facts)
    fitted = points.drop_duplicates(["memory", "direction", "clock"])
    assert len(fitted[fitted["clock"].str.startswith("host")]) == 10
    for kind, bandwidth in COPY.items():
        of_kind = fitted[fitted["memory"] == kind]
        assert of_kind["gigabytes"].tolist() == pytest.approx(
            [bandwidth / 1e9] * len(of_kind), rel=0.02
        )


def test_break_even_is_the_extra_price_over_what_a_copy_saves(facts: StudyFacts) -> None:
    table = break_even_table(facts)
    row = table[
        (table["memory"] == "registered")
        & (table["size"] == 16777216)
        & (table["direction"] == "h2d")
    ].iloc[0]
    extra = 3 * (4e-3 + 2e-3 + 1e-3) - (4e-3 + 1e-3)
    saved = 16777216 / 5e9 - 16777216 / 49e9
    assert row["copies"] == pytest.approx(extra / saved, rel=0.02)
    assert row["label"] == "6"


@pytest.mark.parametrize(
    ("copies", "label"),
    [(0.0, "at once"), (0.2, "1"), (2.0, "2"), (2.1, "3"), (1200.5, "1,201"), (math.nan, "never")],
)
def test_copies_to_break_even_are_whole(copies: float, label: str) -> None:
    assert _after(copies) == label


def test_steps_show_what_moves_the_headlines_piece() -> None:
    shown = at_headline(TRANSFERS)
    assert {"pageable_loop", "pinned_loop", "registered_loop"} <= set(shown.variant_names)
    assert "pinned_2d" not in shown.variant_names
    assert all(case["count"] == 1 for variant in shown.variants for case in variant.cases)
