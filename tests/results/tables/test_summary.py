"""Medians over rounds, the chosen run, and unmeasured variants."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.results.collect import collect
from analysis.results.tables.ratios import RATIO_COLUMNS, ratios, ratios_by_round
from analysis.results.tables.rows import RunRow, SkippedRow, SummaryRow, columns
from analysis.results.tables.summary import runs, skipped, summarise
from tests.results.tables.rows import CASE, NEW, OLD, only, rounds, row, table
from tests.synthetic import CALLS, STUDIES, add_run, provenance_of, samples_of, write_machine


def test_a_median_is_over_rounds_of_each_rounds_median() -> None:
    samples = table(
        [row("bytewise", value, round=0) for value in (4.0, 5.0, 30.0)],
        [row("bytewise", value, round=1) for value in (4.0, 4.0)],
        [row("bytewise", value, round=2, throttle="hw_slowdown") for value in (7.0,)],
    )
    found = only(summarise(samples, STUDIES))
    assert list(found.index) == columns(SummaryRow)
    assert found["median"] == 5.0  # of 5, 4 and 7; of means, it is 7, of the samples 4.5
    assert found["ci_low"] <= 5.0 <= found["ci_high"]
    assert (found["n"], found["rounds"], found["verified"], found["stale"]) == (6, 3, 1, 0)
    assert (found["q1"], found["q3"]) == (4.0, 6.5)
    assert found["throttled"] == pytest.approx(1 / 6)


def test_many_samples_of_one_round_do_not_outweigh_the_others() -> None:
    samples = table(
        [row("bytewise", 9.0, round=0, sample=n) for n in range(40)],
        rounds("bytewise", [9.0, 1.0, 2.0, 3.0])[1:],
    )
    assert only(summarise(samples, STUDIES))["median"] == 2.5


def test_a_single_round_has_no_interval() -> None:
    found = only(summarise(table(rounds("bytewise", [3.0])), STUDIES))
    assert found["median"] == 3.0
    assert math.isnan(found["ci_low"])
    assert math.isnan(found["ci_high"])


def test_an_unverified_sample_makes_its_row_unverified() -> None:
    samples = table(rounds("bytewise", [1.0, 1.0]), [row("bytewise", 1.0, verified=0)])
    assert only(summarise(samples, STUDIES))["verified"] == 0


def test_rows_are_one_a_machine_variant_case_and_metric() -> None:
    samples = table(
        rounds("bytewise", [1.0, 1.0]),
        rounds("bytewise", [2.0, 2.0, 2.0], metric="host_time"),
        rounds("bytewise", [3.0, 3.0], machine="other"),
        rounds("bytewise", [4.0, 4.0], case="batch=16,rows=512,draw=once"),
        rounds("vectors", [5.0, 5.0]),
        [row("warps", None, status="skipped", reason="no GPU", verified=0)],
    )
    found = summarise(samples, STUDIES)
    assert sorted(found["median"]) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert not found.duplicated(["machine", "variant", "case", "metric"]).any()


def test_summary_uses_all_fresh_runs_or_else_the_newest() -> None:
    samples = table(
        rounds("bytewise", [1.0, 1.0], run=OLD),
        rounds("bytewise", [2.0, 2.0], run=NEW, stale=True),
        rounds("vectors", [3.0, 3.0], run=OLD, stale=True),
        rounds("vectors", [4.0, 4.0], run=NEW, stale=True),
        rounds("warps", [5.0, 5.0], run=OLD),
        rounds("warps", [6.0, 6.0], run=NEW),
    )
    found = summarise(samples, STUDIES).set_index("variant")
    assert dict(found["median"]) == {
        "bytewise": 1.0,
        "vectors": 4.0,
        "warps": 5.5,  # of both runs
    }
    assert dict(found["stale"]) == {
        "bytewise": 0,
        "vectors": 1,
        "warps": 0,
    }
    assert dict(found["runs"]) == {"bytewise": 1, "vectors": 1, "warps": 2}
    table_of_runs = runs(samples)
    assert list(table_of_runs.columns) == columns(RunRow)
    assert dict(zip(table_of_runs["variant"], table_of_runs["run"], strict=True)) == {
        "bytewise": OLD,
        "vectors": NEW,
        "warps": NEW,
    }


def test_figure_is_based_on_all_fresh_runs_and_counts_hosts() -> None:
    runs = [f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3)]
    samples = table(
        *(
            rounds("bytewise", [value, value + 1, value + 2.5], run=run, host=host)
            for run, host, value in zip(runs, ("a", "b", "b"), (1.0, 2.0, 4.0), strict=True)
        ),
        rounds("bytewise", [90.0, 90.0], run="2025-01-01T00:00:00Z", stale=True),
    )
    found = only(summarise(samples, STUDIES))
    assert found["median"] == 3.0  # of 2, 3 and 5
    assert found["ci_low"] < 2.0 and found["ci_high"] > 5.0
    assert (found["runs"], found["hosts"], found["rounds"], found["n"]) == (3, 2, 9, 9)
    assert found["by_run"] == "2|3|5"


def test_runs_outside_the_interval_of_the_others_are_counted() -> None:
    runs = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 5)]
    samples = table(
        *(
            rounds(name, [value], run=run)
            for name, last in (("bytewise", 1.5), ("vectors", 1.02))
            for run, value in zip(runs, (1.0, 1.01, 0.99, last), strict=True)
        )
    )
    found = summarise(samples, STUDIES).set_index("variant")
    assert dict(found["apart"]) == {"bytewise": 1, "vectors": 0}


def test_disturbed_rounds_of_all_runs_are_counted() -> None:
    samples = table(
        rounds("bytewise", [1.0, 1.0], run=OLD, disturbed=True),
        rounds("bytewise", [1.0, 1.0, 1.0], run=NEW),
        [row("bytewise", 1.0, run=NEW, round=2, sample=1, disturbed=True)],
        rounds("vectors", [1.0], run=OLD, disturbed=True, stale=True),
        rounds("vectors", [1.0], run=NEW),
    )
    samples.loc[(samples["run"] == NEW) & (samples["round"] == 2), "disturbed"] = True
    table_of_runs = runs(samples).set_index("variant")
    assert dict(table_of_runs["disturbed"]) == {"bytewise": 3, "vectors": 0}


def test_a_wrong_output_in_one_round_leaves_no_figure() -> None:
    wrong = row("bytewise", None, round=2, status="failed", reason="byte 3", verified=0)
    samples = table(rounds("bytewise", [1.0, 1.0]), [wrong], rounds("vectors", [2.0, 2.0]))
    assert set(summarise(samples, STUDIES)["variant"]) == {"vectors"}
    assert ratios(ratios_by_round(samples, STUDIES)).empty
    found = only(skipped(samples))
    assert (found["variant"], found["status"], found["reason"]) == ("bytewise", "failed", "byte 3")


def test_the_run_is_chosen_case_by_case() -> None:
    other = "batch=16,rows=512,draw=once"
    samples = table(
        rounds("bytewise", [1.0, 1.0], run=OLD, case=other),
        rounds("bytewise", [2.0, 2.0], run=NEW),
    )
    assert dict(summarise(samples, STUDIES).set_index("case")["median"]) == {CASE: 2.0, other: 1.0}


def test_case_without_a_measurement_gives_its_reason_once() -> None:
    samples = table(
        rounds("bytewise", [1.0, 1.0]),
        [row("vectors", None, round=n, status="failed", reason="byte 0") for n in range(3)],
        [row("warps", None, status="skipped", reason="no GPU", stale=True)],
        # Measured since: no longer skipped.
        [row("in_flight", None, status="skipped", reason="no GPU", run=OLD)],
        rounds("in_flight", [1.0, 1.0], run=NEW),
    )
    found = skipped(samples)
    assert list(found.columns) == columns(SkippedRow)
    statuses = found[["variant", "status", "reason", "stale"]].itertuples(index=False, name=None)
    assert sorted(statuses) == [
        ("vectors", "failed", "byte 0", 0),
        ("warps", "skipped", "no GPU", 1),
    ]


def test_no_samples_are_empty_tables_with_their_columns() -> None:
    nothing = table()
    assert list(summarise(nothing, STUDIES).columns) == columns(SummaryRow)
    assert list(ratios(ratios_by_round(nothing, STUDIES)).columns) == RATIO_COLUMNS
    assert list(skipped(nothing).columns) == columns(SkippedRow)
    assert list(runs(nothing).columns) == columns(RunRow)


def test_skipped_run_does_not_hide_a_measured_one(tmp_path: Path) -> None:
    timed = CALLS.variant("python")
    write_machine(tmp_path, "box", CALLS, variants=[timed], run="2026-01-01T00:00:00Z")
    later = "2026-01-02T00:00:00Z"
    skipped_row = replace(
        samples_of(CALLS, timed, run=later, rounds=1)[0],
        value=None,
        status="skipped",
        reason="no GPU",
        verified=0,
    )
    provenance = provenance_of(CALLS, timed, run=later)
    add_run(tmp_path, "box", "calls", "python", [skipped_row], provenance)
    table = summarise(collect(tmp_path, STUDIES).samples, STUDIES)
    assert set(table["variant"]) == {"python"} and not table["stale"].any()
