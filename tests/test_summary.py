"""Medians, intervals, ratios and verdicts: right by hand, and how often wrong by chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.results.collect import collect, visits
from analysis.results.samples import COLUMNS
from analysis.results.statistics import expanded_confidence, median_intervals, verdict
from analysis.results.store import add_run
from analysis.results.summary import (
    RATIO_COLUMNS,
    RUN_COLUMNS,
    SKIPPED_COLUMNS,
    SUMMARY_COLUMNS,
    comparisons,
    ratios,
    ratios_by_run,
    repeats,
    runs,
    skipped,
    summarise,
)
from analysis.results.tables import write_tables
from analysis.study import Study, discover
from tests.synthetic import provenance_of, samples_of, write_machine

GATHER = discover()["h2d_gather"]
METHOD = discover()["method"]
ALLOCATOR = discover()["allocator"]
STUDIES = {"h2d_gather": GATHER, "method": METHOD}
OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
CASE = "bs=1,topk=512,draw=permutation"

Row = dict[str, object]


def row(variant: str, value: float | None, **fields: object) -> Row:
    """One sample as `collect` gives it."""
    default: Row = {
        "machine": "box",
        "study": "h2d_gather",
        "variant": variant,
        "case": CASE,
        "metric": "gpu_time",
        "unit": "s",
        "value": value,
        "run": NEW,
        "round": 0,
        "sample": 0,
        "verified": 1,
        "status": "ok",
        "reason": "",
        "throttle": "",
        "sm_mhz": 1980.0,
        "started_at": NEW,
        "stale": False,
    }
    return default | fields


def rounds(variant: str, values: Iterable[float], **fields: object) -> list[Row]:
    """One sample a round."""
    return [row(variant, value, round=n, **fields) for n, value in enumerate(values)]


def table(*rows: list[Row]) -> pd.DataFrame:
    return pd.DataFrame(
        [entry for group in rows for entry in group], columns=["machine", *COLUMNS, "stale"]
    )


def only(frame: pd.DataFrame) -> pd.Series:
    assert len(frame) == 1
    return frame.iloc[0]


def by_names(compared: pd.DataFrame) -> dict[tuple[str, str], pd.Series]:
    return {(entry["variant"], entry["against"]): entry for _, entry in compared.iterrows()}


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


def test_a_step_is_held_against_the_one_before_references_and_ceilings() -> None:
    pairs = {(variant.name, other.name) for variant, other in comparisons(GATHER)}
    others = {variant.name for variant in GATHER.with_role("reference", "ceiling")}
    assert {other for name, other in pairs if name == "v3_loads_first"} == {
        "v2_warp_per_token",
        *others,
    }
    assert {other for name, other in pairs if name == "v0_byte_copy"} == others
    assert not {name for name, _ in pairs} & others
    listed = [(variant.name, other.name) for variant, other in comparisons(GATHER)]
    assert len(listed) == len(pairs)


def test_a_ratio_is_a_speed_up_paired_by_round() -> None:
    # The second round is slow for both: paired, the ratio is 2 in every round.
    samples = table(
        rounds("v0_byte_copy", [2.0, 20.0, 2.2]), rounds("v1_vectorized", [1.0, 10.0, 1.1])
    )
    found = only(ratios(ratios_by_run(samples, STUDIES)))
    assert list(found.index) == RATIO_COLUMNS
    assert (found["variant"], found["against"]) == ("v1_vectorized", "v0_byte_copy")
    assert found["ratio"] == pytest.approx(2.0)
    assert found["ci_low"] == pytest.approx(2.0)
    assert found["ci_high"] == pytest.approx(2.0)
    assert found["verdict"] == "faster"


def test_within_a_round_a_ratio_is_paired_by_visit() -> None:
    # A slow spell meets three of the one's eight visits and five of the other's: their medians
    # would be of unlike moments.
    case = "pattern=first_allocation"
    (visited,) = (one for one in ALLOCATOR.variant("p4_final").cases if one.id == case)
    assert visited.visits == 8
    own, other = [1.0] * 5 + [10.0] * 3, [2.0] * 3 + [20.0] * 5
    samples = table(
        [
            row(name, value, study="allocator", case=case, metric="op_time", sample=number)
            for name, values in (("p4_final", own), ("torch_caching", other))
            for number, value in enumerate(values)
        ]
    )
    found = only(ratios_by_run(samples, {"allocator": ALLOCATOR}))
    assert (found["variant"], found["against"]) == ("p4_final", "torch_caching")
    assert found["ratio"] == pytest.approx(2.0)


def test_a_visit_takes_equally_many_samples() -> None:
    case = "bytes=1048576"
    samples = table(
        [
            row("copy_engine", 1.0, study="link_calibration", case=case, sample=number)
            for number in range(8)
        ],
        rounds("v0_byte_copy", [1.0, 1.0]),
    )
    assert visits(samples, discover()).tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 0, 0]


def test_rounds_that_only_one_variant_has_are_not_paired() -> None:
    samples = table(rounds("v0_byte_copy", [2.0, 2.0, 900.0]), rounds("v1_vectorized", [1.0, 1.0]))
    assert only(ratios_by_run(samples, STUDIES))["ratio"] == pytest.approx(2.0)


def test_variants_of_different_runs_are_not_paired() -> None:
    samples = table(
        rounds("v0_byte_copy", [2.0, 2.0], run=OLD), rounds("v1_vectorized", [1.0, 1.0], run=NEW)
    )
    assert ratios_by_run(samples, STUDIES).empty
    assert list(ratios(ratios_by_run(samples, STUDIES)).columns) == RATIO_COLUMNS


def test_nor_are_variants_of_different_machines_or_cases() -> None:
    base = rounds("v0_byte_copy", [2.0, 2.0])
    for elsewhere in ({"machine": "other"}, {"case": "bs=16,topk=512,draw=permutation"}):
        samples = table(base, rounds("v1_vectorized", [1.0, 1.0], **elsewhere))
        assert ratios_by_run(samples, STUDIES).empty


def test_ratios_are_of_the_newest_run_that_has_both() -> None:
    samples = table(
        rounds("v0_byte_copy", [2.0, 2.0], run=OLD),
        rounds("v1_vectorized", [1.0, 1.0], run=OLD),
        rounds("v0_byte_copy", [3.0, 3.0], run=NEW),
        rounds("v1_vectorized", [1.0, 1.0], run=NEW),
        rounds("v2_warp_per_token", [0.25, 0.25], run=OLD),
    )
    compared = ratios_by_run(samples, STUDIES)
    assert sorted(compared["ratio"]) == pytest.approx([2.0, 3.0, 4.0])
    newest = by_names(ratios(compared))
    assert newest["v1_vectorized", "v0_byte_copy"]["ratio"] == pytest.approx(3.0)
    assert newest["v2_warp_per_token", "v1_vectorized"]["ratio"] == pytest.approx(4.0)


def test_ratios_take_no_stale_and_no_failed_sample() -> None:
    samples = table(
        rounds("v0_byte_copy", [2.0, 2.0], run=OLD),
        rounds("v1_vectorized", [1.0, 1.0], run=OLD),
        rounds("v0_byte_copy", [9.0, 9.0], run=NEW),
        rounds("v1_vectorized", [1.0, 1.0], run=NEW, stale=True),
        [row("v2_warp_per_token", None, run=OLD, status="failed", reason="byte 0", verified=0)],
    )
    assert only(ratios_by_run(samples, STUDIES))["ratio"] == pytest.approx(2.0)
    stale = samples.assign(stale=True)
    assert ratios_by_run(stale, STUDIES).empty


def test_where_the_cpu_works_only_host_time_compares() -> None:
    samples = table(
        *(
            rounds(variant, [time, time], metric=metric)
            for variant, time in (("v0_byte_copy", 1.0), ("batch_memcpy", 4.0))
            for metric in ("gpu_time", "host_time")
        ),
        rounds("ceiling_sm_copy", [1.0, 1.0]),
    )
    compared = ratios_by_run(samples, STUDIES)
    metrics = {
        against: set(compared[compared["against"] == against]["metric"])
        for against in ("batch_memcpy", "ceiling_sm_copy")
    }
    assert metrics == {"batch_memcpy": {"host_time"}, "ceiling_sm_copy": {"gpu_time"}}


def test_only_times_are_compared() -> None:
    samples = table(
        *(
            rounds(variant, [16.0, 16.0], metric="sms_used", unit="1")
            for variant in ("v0_byte_copy", "v1_vectorized")
        )
    )
    assert ratios_by_run(samples, STUDIES).empty


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.02, 1.10, "faster"),
        (1.001, 1.02, "faster"),
        (0.90, 0.98, "slower"),
        (0.98, 0.999, "slower"),
        (0.995, 1.005, "same"),
        (1.001, 1.005, "same"),
        (0.99, 1.01, "same"),
        (0.95, 1.05, "unclear"),
        (1.0, 1.05, "unclear"),
        (0.95, 1.0, "unclear"),
        (0.95, 1.005, "unclear"),
        (math.nan, math.nan, "unclear"),
        (1.5, math.nan, "unclear"),
    ],
)
def test_a_verdict_is_what_the_whole_interval_says(low: float, high: float, said: str) -> None:
    assert verdict(low, high) == said


def test_repeats_are_the_ratios_of_one_program_listed_twice() -> None:
    case = METHOD.headline
    samples = table(
        *(
            rounds(variant, [1.0, 1.0], study="method", case=case, run=run)
            for variant in ("copy_a", "copy_b", "empty_kernel")
            for run in (OLD, NEW)
        ),
        rounds("v0_byte_copy", [1.0, 1.0]),
        rounds("v1_vectorized", [1.0, 1.0]),
    )
    compared = ratios_by_run(samples, STUDIES)
    found = repeats(compared, STUDIES)
    assert set(zip(found["variant"], found["against"], strict=True)) == {("copy_b", "copy_a")}
    assert list(found["run"]) == [OLD, NEW]
    assert len(compared) > len(found)
    assert repeats(compared.iloc[:0], STUDIES).empty


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


def test_edited_code_makes_stale_rows_and_ends_their_ratios(tmp_path: Path) -> None:
    write_machine(tmp_path / "results", "box", GATHER, rounds=4)
    edited = tuple(
        replace(variant, flags=("-O1",)) if variant.name == "v1_vectorized" else variant
        for variant in GATHER.variants
    )
    studies: Mapping[str, Study] = {"h2d_gather": replace(GATHER, variants=edited)}
    write_tables(tmp_path / "results", studies, tmp_path / "out")
    summary = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert list(summary.columns) == SUMMARY_COLUMNS
    assert set(summary[summary["stale"] == 1]["variant"]) == {"v1_vectorized"}
    compared = pd.read_csv(tmp_path / "out" / "ratios.csv")
    assert "v1_vectorized" not in {*compared["variant"], *compared["against"]}
    assert "v3_loads_first" in set(compared["variant"])
    assert collect(tmp_path / "results", studies).refused == {}


# How often the method is wrong, over many made-up experiments of ten rounds.

ROUNDS = 10
EXPERIMENTS = 1000


def noise(random: np.random.Generator, sigma: float, outliers: float) -> np.ndarray:
    """Times around 1 of many experiments [EXPERIMENTS, ROUNDS]; some rounds go grossly wrong."""
    times = random.lognormal(0, sigma, (EXPERIMENTS, ROUNDS))
    wrong = random.random(times.shape) < outliers
    return np.where(wrong, times * random.uniform(1.5, 10, times.shape), times)


def verdicts(speed_ups: np.ndarray) -> list[str]:
    _, low, high = median_intervals(speed_ups)
    return [verdict(*ends) for ends in zip(low, high, strict=True)]


@pytest.mark.parametrize("outliers", [0.0, 0.15])
@pytest.mark.parametrize("sigma", [0.003, 0.01, 0.05])
def test_one_program_against_itself_is_rarely_called_different(
    sigma: float, outliers: float
) -> None:
    random = np.random.default_rng([7, int(sigma * 1e4), int(outliers * 100)])
    said = verdicts(noise(random, sigma, outliers) / noise(random, sigma, outliers))
    assert said.count("faster") + said.count("slower") <= 0.05 * EXPERIMENTS
    if sigma == 0.003 and not outliers:
        assert said.count("same") >= 0.95 * EXPERIMENTS


@pytest.mark.parametrize(("speed_up", "right"), [(1.1, "faster"), (1 / 1.1, "slower")])
def test_a_tenth_more_speed_is_found_in_noise_of_a_hundredth(speed_up: float, right: str) -> None:
    random = np.random.default_rng(11)
    said = verdicts(speed_up * noise(random, 0.01, 0) / noise(random, 0.01, 0))
    assert said.count(right) >= 0.95 * EXPERIMENTS


def test_outliers_in_a_round_do_not_turn_a_verdict_round() -> None:
    random = np.random.default_rng(13)
    said = verdicts(1.1 * noise(random, 0.01, 0.15) / noise(random, 0.01, 0.15))
    assert said.count("slower") <= 0.01 * EXPERIMENTS


@pytest.mark.parametrize("outliers", [0.0, 0.15])
@pytest.mark.parametrize("count", [8, 10, 16])
def test_a_medians_interval_holds_the_true_median(count: int, outliers: float) -> None:
    random = np.random.default_rng([17, count])
    times = random.lognormal(0, 0.05, (EXPERIMENTS, count))
    # An outlier as often below as above leaves the true median at 1.
    wrong = random.random(times.shape) < outliers
    times = np.where(wrong, times * random.choice([0.2, 5.0], times.shape), times)
    medians, low, high = median_intervals(times)
    assert np.mean((low <= 1) & (high >= 1)) >= 0.93
    assert np.all((low <= medians) & (medians <= high))


def test_an_interval_is_the_same_whenever_it_is_computed() -> None:
    times = np.random.default_rng(19).lognormal(0, 0.05, (3, ROUNDS))
    first, again = median_intervals(times), median_intervals(times)
    assert all(np.array_equal(*ends) for ends in zip(first, again, strict=True))


def test_few_rounds_widen_the_percentiles() -> None:
    levels = [expanded_confidence(count) for count in (3, 5, 10, 30, 1000)]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == pytest.approx(0.95, abs=0.001)
    assert max(levels) < 1


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
