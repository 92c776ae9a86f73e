"""Ratios of two variants: the pairs of variants, and the pairing of their samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from analysis.results.collect import collect, visits
from analysis.results.tables.ratios import (
    RATIO_COLUMNS,
    rankings,
    ratios,
    ratios_by_round,
    ratios_by_run,
)
from analysis.results.tables.repeats import repeats
from analysis.results.tables.summary import SUMMARY_COLUMNS
from analysis.study import Study
from tests.results.tables.rows import NEW, OLD, by_names, only, rounds, row, table
from tests.roots import write_tables
from tests.synthetic import CALLS, COPY, STUDIES, write_machine


def test_step_is_compared_with_the_previous_one_references_and_ceilings() -> None:
    pairs = {(variant.name, other.name) for variant, other in COPY.comparisons()}
    others = {variant.name for variant in COPY.with_role("reference", "ceiling")}
    assert {other for name, other in pairs if name == "in_flight"} == {
        "warps",
        *others,
    }
    assert {other for name, other in pairs if name == "bytewise"} == others
    assert {pair for pair in pairs if pair[0] in others} == {("batched", "library")}
    listed = [(variant.name, other.name) for variant, other in COPY.comparisons()]
    assert len(listed) == len(pairs)


def test_step_is_compared_with_all_previous_ones_in_its_shown_case() -> None:
    further = {(step.name, other.name) for step, other in rankings(COPY)}
    assert ("in_flight", "bytewise") in further
    assert ("in_flight", "warps") not in further and ("warps", "in_flight") not in further
    times = {"bytewise": 4.0, "warps": 2.0, "in_flight": 1.0}
    other = next(case.id for case in COPY.variant("warps").cases if case.id != COPY.headline)
    samples = table(
        *(
            rounds(variant, [seconds] * 3, case=case)
            for variant, seconds in times.items()
            for case in (COPY.headline, other)
        )
    )
    found = ratios(ratios_by_round(samples, STUDIES))
    compared = found[(found["variant"] == "in_flight") & (found["against"] == "bytewise")]
    assert list(compared["case"]) == [COPY.headline]
    assert list(compared["ratio"]) == [4.0]


def test_a_ratio_is_a_speed_up_paired_by_round() -> None:
    # The second round is slow for both: paired, the ratio is 2 in every round.
    samples = table(rounds("bytewise", [2.0, 20.0, 2.2]), rounds("vectors", [1.0, 10.0, 1.1]))
    found = only(ratios(ratios_by_round(samples, STUDIES)))
    assert list(found.index) == RATIO_COLUMNS
    assert (found["variant"], found["against"]) == ("vectors", "bytewise")
    assert found["ratio"] == pytest.approx(2.0)
    assert found["ci_low"] == pytest.approx(2.0)
    assert found["ci_high"] == pytest.approx(2.0)
    assert (found["verdict"], found["runs"]) == ("faster", 1)


def test_within_a_round_a_ratio_is_paired_by_visit() -> None:
    # A slow period includes three of one variant's eight visits and five of the other's. Their
    # medians would belong to different periods.
    case = "calls=1000"
    (visited,) = (one for one in CALLS.variant("compiled").cases if one.id == case)
    assert visited.visits == 8
    compiled, python = [1.0] * 5 + [10.0] * 3, [2.0] * 3 + [20.0] * 5
    samples = table(
        [
            row(name, value, study="calls", case=case, metric="host_time", sample=number)
            for name, values in (("compiled", compiled), ("python", python))
            for number, value in enumerate(values)
        ]
    )
    found = only(ratios_by_run(ratios_by_round(samples, STUDIES)))
    assert (found["variant"], found["against"]) == ("compiled", "python")
    assert found["ratio"] == pytest.approx(2.0)


def test_a_visit_takes_equally_many_samples() -> None:
    samples = table(
        [row("python", 1.0, study="calls", case="calls=1000", sample=n) for n in range(16)],
        rounds("bytewise", [1.0, 1.0]),
    )
    taken = visits(samples, STUDIES).tolist()
    assert taken == [visit for visit in range(8) for _ in range(2)] + [0, 0]


def test_rounds_that_only_one_variant_has_are_not_paired() -> None:
    samples = table(rounds("bytewise", [2.0, 2.0, 900.0]), rounds("vectors", [1.0, 1.0]))
    assert only(ratios_by_run(ratios_by_round(samples, STUDIES)))["ratio"] == pytest.approx(2.0)


def test_variants_of_different_runs_are_not_paired() -> None:
    samples = table(rounds("bytewise", [2.0, 2.0], run=OLD), rounds("vectors", [1.0, 1.0], run=NEW))
    assert ratios_by_run(ratios_by_round(samples, STUDIES)).empty
    assert list(ratios(ratios_by_round(samples, STUDIES)).columns) == RATIO_COLUMNS


def test_nor_are_variants_of_different_machines_or_cases() -> None:
    base = rounds("bytewise", [2.0, 2.0])
    for elsewhere in ({"machine": "other"}, {"case": "batch=16,rows=512,draw=once"}):
        samples = table(base, rounds("vectors", [1.0, 1.0], **elsewhere))
        assert ratios_by_run(ratios_by_round(samples, STUDIES)).empty


def test_ratios_never_mix_runs() -> None:
    samples = table(
        rounds("bytewise", [2.0, 2.0], run=OLD),
        rounds("vectors", [1.0, 1.0], run=OLD),
        rounds("bytewise", [3.0, 3.0], run=NEW, host="there"),
        rounds("vectors", [1.0, 1.0], run=NEW, host="there"),
        rounds("warps", [0.25, 0.25], run=OLD),
    )
    by_round = ratios_by_round(samples, STUDIES)
    assert sorted(ratios_by_run(by_round)["ratio"]) == pytest.approx([2.0, 3.0, 4.0])
    found = by_names(ratios(by_round))
    assert found["vectors", "bytewise"]["ratio"] == pytest.approx(2.5)  # of both runs
    assert found["vectors", "bytewise"]["by_run"] == "2|3"
    assert tuple(found["vectors", "bytewise"][["runs", "hosts"]]) == (2, 2)
    assert tuple(found["warps", "vectors"][["runs", "hosts"]]) == (1, 1)
    assert found["warps", "vectors"]["ratio"] == pytest.approx(4.0)


def of_runs(*times: float) -> pd.Series:
    """The ratio for runs with these times of one variant, and 1 s of the other."""
    samples = table(
        *(
            rounds(variant, [time, time], run=f"2026-01-0{day}T00:00:00Z")
            for day, other in enumerate(times, start=1)
            for variant, time in (("bytewise", other), ("vectors", 1.0))
        )
    )
    return only(ratios(ratios_by_round(samples, STUDIES)))


def test_ratio_is_based_on_all_runs() -> None:
    found = of_runs(2.0, 2.1, 2.2)
    assert (found["ratio"], found["runs"]) == (pytest.approx(2.1), 3)
    assert found["ci_low"] < 2.0 and found["ci_high"] > 2.2
    assert found["verdict"] == "faster"


def test_verdict_of_all_runs_is_decided_despite_a_wide_prediction() -> None:
    found = of_runs(1.2, 1.5, 1.35)
    assert found["ci_low"] < 1
    assert found["verdict"] == "faster"


def test_a_visit_counts_by_the_median_of_its_samples() -> None:
    taken = {"bytewise": (2.0, 4.0, 30.0), "vectors": (0.1, 1.0, 2.0)}
    samples = table(
        [
            row(name, value, sample=n)
            for name, values in taken.items()
            for n, value in enumerate(values)
        ]
    )
    assert only(ratios(ratios_by_round(samples, STUDIES)))["ratio"] == pytest.approx(4.0)


def test_repeats_are_no_reference() -> None:
    assert CALLS.is_repeat(CALLS.variant("again"))
    references = replace(
        CALLS,
        variants=tuple(
            replace(v, role="reference") if v.name == "again" else v for v in CALLS.variants
        ),
    )
    pairs = [(variant.name, other.name) for variant, other in references.comparisons()]
    assert ("again", "python") in pairs
    assert [variant for variant, other in pairs if other == "again"] == []
    assert "again" not in [
        v.name for v in (*references.subjects, *references.with_role("reference"))
    ]


def test_ratios_take_no_stale_and_no_failed_sample() -> None:
    samples = table(
        rounds("bytewise", [2.0, 2.0], run=OLD),
        rounds("vectors", [1.0, 1.0], run=OLD),
        rounds("bytewise", [9.0, 9.0], run=NEW),
        rounds("vectors", [1.0, 1.0], run=NEW, stale=True),
        [row("warps", None, run=OLD, status="failed", reason="byte 0", verified=0)],
    )
    assert only(ratios_by_run(ratios_by_round(samples, STUDIES)))["ratio"] == pytest.approx(2.0)
    stale = samples.assign(stale=True)
    assert ratios_by_run(ratios_by_round(stale, STUDIES)).empty


def test_variants_with_work_on_the_cpu_are_compared_by_host_time() -> None:
    samples = table(
        *(
            rounds(variant, [time, time], metric=metric)
            for variant, time in (("bytewise", 1.0), ("batched", 4.0))
            for metric in ("gpu_time", "host_time")
        ),
        rounds("ceiling_kernel", [1.0, 1.0]),
    )
    compared = ratios_by_run(ratios_by_round(samples, STUDIES))
    metrics = {
        against: set(compared[compared["against"] == against]["metric"])
        for against in ("batched", "ceiling_kernel")
    }
    assert metrics == {"batched": {"host_time"}, "ceiling_kernel": {"gpu_time"}}


@pytest.mark.parametrize(("metric", "unit"), [("sms_used", "1"), ("submit_time", "s")])
def test_only_times_of_whole_operations_are_compared(metric: str, unit: str) -> None:
    samples = table(
        *(
            rounds(variant, [16.0, 16.0], metric=metric, unit=unit)
            for variant in ("bytewise", "vectors")
        )
    )
    assert ratios_by_run(ratios_by_round(samples, STUDIES)).empty


def test_repeats_are_the_ratios_of_one_program_listed_twice() -> None:
    case = CALLS.headline
    samples = table(
        *(
            rounds(variant, [1.0, 1.0], study="calls", case=case, run=run)
            for variant in ("python", "again", "compiled")
            for run in (OLD, NEW)
        ),
        rounds("bytewise", [1.0, 1.0]),
        rounds("vectors", [1.0, 1.0]),
    )
    compared = ratios_by_run(ratios_by_round(samples, STUDIES))
    found = repeats(compared, STUDIES)
    assert set(zip(found["variant"], found["against"], strict=True)) == {("again", "python")}
    assert list(found["run"]) == [OLD, NEW]
    assert len(compared) > len(found)
    assert repeats(compared.iloc[:0], STUDIES).empty


def test_edited_code_makes_stale_rows_and_ends_their_ratios(tmp_path: Path) -> None:
    write_machine(tmp_path / "results", "box", COPY, rounds=4)
    edited = tuple(
        replace(variant, flags=("-O1",)) if variant.name == "vectors" else variant
        for variant in COPY.variants
    )
    studies: Mapping[str, Study] = {"copy": replace(COPY, variants=edited)}
    write_tables(tmp_path / "results", studies, tmp_path / "out")
    summary = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert list(summary.columns) == SUMMARY_COLUMNS
    assert set(summary[summary["stale"] == 1]["variant"]) == {"vectors"}
    compared = pd.read_csv(tmp_path / "out" / "ratios.csv")
    assert "vectors" not in {*compared["variant"], *compared["against"]}
    assert "in_flight" in set(compared["variant"])
    assert collect(tmp_path / "results", studies).refused == {}
