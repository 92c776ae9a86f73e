"""Medians over rounds, the run that is chosen, and what was not measured."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.store.collect import collect
from analysis.store.results import add_run
from analysis.study import discover
from analysis.tables.summary import (
    RATIO_COLUMNS,
    RUN_COLUMNS,
    SKIPPED_COLUMNS,
    SUMMARY_COLUMNS,
    ratios,
    ratios_by_run,
    runs,
    skipped,
    summarise,
)
from tests.results.rows import (
    CASE,
    NEW,
    OLD,
    STUDIES,
    only,
    rounds,
    row,
    table,
)
from tests.synthetic import provenance_of, samples_of, write_machine


def test_a_median_is_over_rounds_of_each_rounds_median() -> None:
    samples = table(
        [row("v0_byte_copy", value, round=0) for value in (6.0, 7.0, 30.0)],
        [row("v0_byte_copy", value, round=1) for value in (4.0, 4.0)],
        [row("v0_byte_copy", value, round=2, throttle="hw_slowdown") for value in (5.0,)],
    )
    found = only(summarise(samples))
    assert list(found.index) == SUMMARY_COLUMNS
    assert found["median"] == 5.0  # of 7, 4 and 5; of the samples themselves it is 5.5
    assert found["ci_low"] <= 5.0 <= found["ci_high"]
    assert (found["n"], found["rounds"], found["verified"], found["stale"]) == (6, 3, 1, 0)
    assert (found["q1"], found["q3"]) == (4.25, 6.75)
    assert found["throttled"] == pytest.approx(1 / 6)


def test_many_samples_of_one_round_do_not_outweigh_the_others() -> None:
    samples = table(
        [row("v0_byte_copy", 9.0, round=0, sample=n) for n in range(40)],
        rounds("v0_byte_copy", [9.0, 1.0, 2.0, 3.0])[1:],
    )
    assert only(summarise(samples))["median"] == 2.5


def test_a_single_round_has_no_interval() -> None:
    found = only(summarise(table(rounds("v0_byte_copy", [3.0]))))
    assert found["median"] == 3.0
    assert math.isnan(found["ci_low"])
    assert math.isnan(found["ci_high"])


def test_an_unverified_sample_makes_its_row_unverified() -> None:
    samples = table(rounds("v0_byte_copy", [1.0, 1.0]), [row("v0_byte_copy", 1.0, verified=0)])
    assert only(summarise(samples))["verified"] == 0


def test_rows_are_one_a_machine_variant_case_and_metric() -> None:
    samples = table(
        rounds("v0_byte_copy", [1.0, 1.0]),
        rounds("v0_byte_copy", [2.0, 2.0, 2.0], metric="host_time"),
        rounds("v0_byte_copy", [3.0, 3.0], machine="other"),
        rounds("v0_byte_copy", [4.0, 4.0], case="bs=16,topk=512,draw=permutation"),
        rounds("v1_vectorized", [5.0, 5.0]),
        [row("v2_warp_per_token", None, status="skipped", reason="no GPU", verified=0)],
    )
    found = summarise(samples)
    assert sorted(found["median"]) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert not found.duplicated(["machine", "variant", "case", "metric"]).any()


def test_a_summary_takes_the_newest_run_that_is_fresh() -> None:
    samples = table(
        rounds("v0_byte_copy", [1.0, 1.0], run=OLD),
        rounds("v0_byte_copy", [2.0, 2.0], run=NEW, stale=True),
        rounds("v1_vectorized", [3.0, 3.0], run=OLD, stale=True),
        rounds("v1_vectorized", [4.0, 4.0], run=NEW, stale=True),
        rounds("v2_warp_per_token", [5.0, 5.0], run=OLD),
        rounds("v2_warp_per_token", [6.0, 6.0], run=NEW),
    )
    found = summarise(samples).set_index("variant")
    assert dict(found["median"]) == {
        "v0_byte_copy": 1.0,
        "v1_vectorized": 4.0,
        "v2_warp_per_token": 6.0,
    }
    assert dict(found["stale"]) == {
        "v0_byte_copy": 0,
        "v1_vectorized": 1,
        "v2_warp_per_token": 0,
    }
    told = runs(samples)
    assert list(told.columns) == RUN_COLUMNS
    assert dict(zip(told["variant"], told["run"], strict=True)) == {
        "v0_byte_copy": OLD,
        "v1_vectorized": NEW,
        "v2_warp_per_token": NEW,
    }


def test_the_run_is_chosen_case_by_case() -> None:
    other = "bs=16,topk=512,draw=permutation"
    samples = table(
        rounds("v0_byte_copy", [1.0, 1.0], run=OLD, case=other),
        rounds("v0_byte_copy", [2.0, 2.0], run=NEW),
    )
    assert dict(summarise(samples).set_index("case")["median"]) == {CASE: 2.0, other: 1.0}


def test_a_case_without_a_measurement_says_why_once() -> None:
    samples = table(
        rounds("v0_byte_copy", [1.0, 1.0]),
        [row("v1_vectorized", None, round=n, status="failed", reason="byte 0") for n in range(3)],
        [row("v2_warp_per_token", None, status="skipped", reason="no GPU", stale=True)],
        # Measured since: no longer skipped.
        [row("v3_loads_first", None, status="skipped", reason="no GPU", run=OLD)],
        rounds("v3_loads_first", [1.0, 1.0], run=NEW),
    )
    found = skipped(samples)
    assert list(found.columns) == SKIPPED_COLUMNS
    told = found[["variant", "status", "reason", "stale"]].itertuples(index=False, name=None)
    assert sorted(told) == [
        ("v1_vectorized", "failed", "byte 0", 0),
        ("v2_warp_per_token", "skipped", "no GPU", 1),
    ]


def test_no_samples_are_empty_tables_with_their_columns() -> None:
    nothing = table()
    assert list(summarise(nothing).columns) == SUMMARY_COLUMNS
    assert list(ratios(ratios_by_run(nothing, STUDIES)).columns) == RATIO_COLUMNS
    assert list(skipped(nothing).columns) == SKIPPED_COLUMNS
    assert list(runs(nothing).columns) == RUN_COLUMNS


def test_a_run_that_was_skipped_does_not_hide_one_that_measured(tmp_path: Path) -> None:
    study = discover()["method"]
    clock = study.variant("clock")
    write_machine(tmp_path, "box", study, variants=[clock], run="2026-01-01T00:00:00Z")
    later = "2026-01-02T00:00:00Z"
    skipped_row = replace(
        samples_of(study, clock, run=later, rounds=1)[0],
        value=None,
        status="skipped",
        reason="no GPU",
        verified=0,
    )
    add_run(
        tmp_path, "box", "method", "clock", [skipped_row], provenance_of(study, clock, run=later)
    )
    table = summarise(collect(tmp_path, {"method": study}).samples)
    assert set(table["variant"]) == {"clock"} and not table["stale"].any()
