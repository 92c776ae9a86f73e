"""What claims come to: every kind of comparison both ways, and what leaves a claim untested."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.claims.verdicts import Bound, Figure, together
from analysis.store.samples import Sample, read_samples
from analysis.tables.rows import ClaimPartRow
from tests.claims.studies import (
    CASE,
    COUNTED,
    NEW,
    NO_MODEL,
    OLD,
    PUBLISHED,
    SECONDS,
    add_samples,
    claim,
    claims_of,
    count,
    describe,
    described_study,
    measure,
    parts_of,
    publish,
    verdict_on,
    write_study,
)
from tests.synthetic import samples_of


@pytest.mark.parametrize(
    ("test", "verdict", "measured"),
    [
        ({"kind": "speedup", "of": "fast", "over": "slow", "at_least": 3.9}, "holds", 4.0),
        ({"kind": "speedup", "of": "fast", "over": "slow", "at_least": 4.1}, "does not hold", 4.0),
        ({"kind": "speedup", "of": "fast", "over": "slow", "at_most": 4.1}, "holds", 4.0),
        ({"kind": "speedup", "of": "fast", "over": "slow", "at_most": 3.9}, "does not hold", 4.0),
        ({"kind": "speedup", "of": "fast", "over": "slow", "within": 0.01}, "holds", 4.0),
        ({"kind": "speedup", "of": "wide", "over": "fast", "at_least": 1.5}, "does not hold", 1.0),
        (
            {"kind": "speedup", "of": "wide", "over": "fast", "by": "rate", "at_least": 1.5},
            "holds",
            2.0,
        ),
        ({"kind": "speedup", "of": "host", "over": "slow", "at_least": 1.9}, "holds", 2.0),
        ({"kind": "share", "of": "fast", "over": "limit", "at_least": 0.4}, "holds", 0.5),
        ({"kind": "share", "of": "fast", "over": "limit", "at_least": 0.6}, "does not hold", 0.5),
        ({"kind": "share", "of": "wide", "over": "limit", "at_least": 0.9}, "holds", 1.0),
        (
            {"kind": "between_cases", "of": "slow", "over_case": "rows=2", "at_least": 4e5},
            "holds",
            5e5,
        ),
        (
            {"kind": "between_cases", "of": "slow", "over_case": "rows=2", "at_most": 4e5},
            "does not hold",
            5e5,
        ),
        ({"kind": "figure", "of": "fast", "metric": "sms_used", "at_most": 16}, "holds", 16.0),
        (
            {"kind": "figure", "of": "fast", "metric": "sms_used", "at_most": 15},
            "does not hold",
            16.0,
        ),
        ({"kind": "figure", "of": "slow", "metric": "gpu_time", "within": 0.01}, "holds", 8e-3),
    ],
)
def test_each_comparison_both_ways(
    tmp_path: Path, test: dict[str, Any], verdict: str, measured: float
) -> None:
    row = verdict_on(tmp_path, claim(**test))
    assert (row["study"], row["claim"], row["machine"]) == ("copy", "it", "box")
    assert row["verdict"] == verdict, row["reason"]
    assert row["measured"] == pytest.approx(measured, rel=1e-3)
    assert row["ci_low"] <= row["measured"] <= row["ci_high"]
    assert row["case"] == CASE
    assert row["unit"] == ("s" if test.get("metric") == "gpu_time" else "1")


def test_a_mean_over_runs_may_be_known_where_the_next_run_is_not(tmp_path: Path) -> None:
    tests = [
        {"kind": kind, "of": "fast", "metric": "gpu_time", "at_most": 2.2e-3}
        for kind in ("figure", "mean_figure")
    ]
    study = write_study(tmp_path, {"id": "both", "says": "Both.", "all": tests})
    results, means = tmp_path / "results", (1.9e-3, 2.0e-3, 2.1e-3, 2.0e-3)
    for day, seconds in enumerate(means, start=1):
        if day == 3:
            untested = {part.comparison: part for part in parts_of(results, study)}
            reason = untested["fast gpu_time, mean over runs"].reason
            assert reason == "a mean over runs takes 3 of them, and there are 2"
        run = f"2026-02-0{day}T00:00:00Z"
        measure(results, study, seconds=SECONDS | {"fast": seconds}, noise=1e-4, run=run)
    said = {part.comparison: part for part in parts_of(results, study)}
    mean, expected = said["fast gpu_time, mean over runs"], said["fast gpu_time"]
    assert (mean.verdict, expected.verdict) == ("holds", "not tested")
    assert mean.measured == pytest.approx(2e-3, rel=2e-3)
    assert expected.ci_low < mean.ci_low < mean.measured < mean.ci_high < expected.ci_high


def test_a_claim_flips_when_the_data_do(tmp_path: Path) -> None:
    entry = claim(kind="speedup", of="fast", over="slow", within=0.2)
    assert verdict_on(tmp_path / "a", entry)["verdict"] == "holds"
    row = verdict_on(tmp_path / "b", entry, seconds=SECONDS | {"slow": 3e-3})
    assert row["verdict"] == "does not hold"
    assert row["published"] == pytest.approx(4.0)
    assert row["reason"] == "not within 20 % of the published: 3.2 to 4.8"


def test_the_figure_of_the_entry_goes_before_the_rows(tmp_path: Path) -> None:
    entry = claim(kind="speedup", of="fast", over="slow", within=0.1)
    row = verdict_on(tmp_path, entry | {"published": {"value": 9, "unit": "1"}})
    assert (row["published"], row["verdict"]) == (9.0, "does not hold")


def test_without_a_published_figure_within_says_nothing(tmp_path: Path) -> None:
    row = verdict_on(tmp_path, claim(kind="speedup", of="host", over="slow", within=0.1))
    assert row["verdict"] == "not tested"
    assert "no published figure" in row["reason"]


def test_an_interval_on_both_sides_decides_nothing(tmp_path: Path) -> None:
    entry = claim(kind="speedup", of="fast", over="wide", at_least=1.0)
    row = verdict_on(tmp_path, entry, noise=0.05)
    assert row["verdict"] == "not tested"
    assert row["reason"].startswith("the interval ")
    assert row["reason"].endswith("does not decide whether it is at least 1")


def test_the_ends_of_an_interval_decide() -> None:
    def said(low: float, high: float, bound: str, value: float, published: float = 10) -> str:
        return Bound(bound, value).judge(Figure((low + high) / 2, low, high, published)).verdict

    assert said(1.0, 1.2, "at_least", 1.0) == "holds"
    assert said(0.9, 1.2, "at_least", 1.0) == "not tested"
    assert said(0.9, 0.99, "at_least", 1.0) == "does not hold"
    assert said(0.9, 1.0, "at_most", 1.0) == "holds"
    assert said(1.01, 1.2, "at_most", 1.0) == "does not hold"
    assert said(9.1, 10.9, "within", 0.1) == "holds"
    assert said(8.0, 9.1, "within", 0.1) == "not tested"
    assert said(5.0, 40.0, "within", 0.1) == "not tested"
    assert said(8.0, 8.9, "within", 0.1) == "does not hold"
    assert said(11.1, 12.0, "within", 0.1) == "does not hold"
    assert said(math.nan, math.nan, "at_least", 1.0) == "not tested"


def test_all_parts_must_hold(tmp_path: Path) -> None:
    parts = [
        {"kind": "speedup", "of": "fast", "over": "slow", "at_least": 3.9},
        {"kind": "figure", "of": "fast", "metric": "sms_used", "at_most": 16},
    ]
    entry = {"id": "it", "says": "Both.", "all": parts}
    assert verdict_on(tmp_path / "a", entry)["verdict"] == "holds"
    row = verdict_on(tmp_path / "b", entry, sms=132)
    assert row["verdict"] == "does not hold"
    # What decides comes first.
    first, second = row["reason"].split("; ")
    assert first == "fast sms_used: 132, not at most 16"
    assert second.startswith("fast over slow: ") and second.endswith("), at least 3.9")
    assert math.isnan(row["measured"])


def test_each_part_has_a_row_and_what_decides_comes_first(tmp_path: Path) -> None:
    parts = [
        {"kind": "speedup", "of": "fast", "over": "slow", "at_least": 3.9},
        {"kind": "figure", "of": "fast", "metric": "gpu_time", "within": 0.1},
        {"kind": "correct", "of": "fast"},
        {"kind": "speedup", "of": "wide", "over": "fast", "by": "rate", "at_most": 1.5},
    ]
    entry = {"id": "it", "says": "All.", "all": parts}
    study = write_study(tmp_path, entry, claim(kind="correct", of="fast") | {"id": "alone"})
    results = tmp_path / "results"
    publish(results)
    measure(results, study)
    found = parts_of(results, study)
    assert {(row.study, row.claim, row.machine) for row in found} == {("copy", "it", "box")}
    assert [row.part for row in found] == [4, 2, 3, 1]
    by_rate, time, check, speedup = found
    assert [row.verdict for row in found] == ["does not hold", "holds", "holds", "holds"]
    assert by_rate.comparison == "wide over fast by rate"
    assert by_rate.reason == "not at most 1.5"
    assert by_rate.measured == pytest.approx(2, rel=1e-3)
    assert (by_rate.ci_low, by_rate.ci_high) == pytest.approx((2, 2), rel=1e-3)
    assert (time.comparison, time.unit, time.case) == ("fast gpu_time", "s", CASE)
    assert time.published == pytest.approx(2e-3)
    assert (check.comparison, check.reason) == ("fast", "passed its check in 8 rounds")
    assert math.isnan(check.measured) and math.isnan(check.ci_low)
    assert speedup.published == pytest.approx(4)
    # The reason of the claim is what they say, in that order.
    (reason,) = [row["reason"] for row in claims_of(results, study) if row["claim"] == "it"]
    assert reason == "; ".join(row.sentence(with_case=False) for row in found)


def test_a_sentence_names_the_case_where_the_parts_have_several() -> None:
    unknown = (math.nan,) * 4
    key = ("copy", "it", "box", 1, "fast", "holds")
    row = ClaimPartRow(*key, "passed its check in 8 rounds", *unknown, "1", "rows=2")
    assert row.sentence(with_case=False) == "fast: passed its check in 8 rounds"
    assert row.sentence(with_case=True) == "fast in rows=2: passed its check in 8 rounds"


def test_a_comparison_of_cases_names_what_differs(tmp_path: Path) -> None:
    one = {"kind": "between_cases", "of": "slow", "over_case": "rows=2"}
    parts = [one | {"at_least": 4e5}, one | {"at_most": 6e5}]
    row = verdict_on(tmp_path, {"id": "it", "says": "So.", "all": parts})
    assert row["reason"].startswith("slow over its rate at rows=2: 5")


def test_a_mean_over_cases_is_geometric(tmp_path: Path) -> None:
    mean = {"kind": "mean_speedup", "of": "fast", "over": "slow", "also": ["rows=2"]}
    described = describe(claim(**mean, at_least=7.9))
    described["variants"][1]["cases"] = ["only", "other"]
    study = described_study(tmp_path, described)
    measure(tmp_path / "results", study, {})
    seconds = {("slow", CASE): 8e-3, ("fast", CASE): 2e-3, ("slow", "rows=2"): 8e-3}
    for name in ("slow", "fast"):
        samples = samples_of(
            study,
            study.variant(name),
            seconds=lambda variant, case, _: seconds.get((variant.name, case.id), 5e-4),
            noise=1e-4,
            rounds=8,
            run=NEW,
        )
        add_samples(tmp_path / "results", study, name, samples, NEW)
    (row,) = claims_of(tmp_path / "results", study)
    assert row["verdict"] == "holds"
    assert row["measured"] == pytest.approx(8, rel=1e-3)


def test_one_part_that_fails_decides_though_another_is_unknown() -> None:
    assert together(["holds", "holds"]) == "holds"
    assert together(["holds", "not tested"]) == "not tested"
    assert together(["not tested", "does not hold"]) == "does not hold"


def test_units_of_the_published_rows(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="units", printed="GB/s", meant="GiB/s"))
    results = tmp_path / "results"
    assert [row["verdict"] for row in claims_of(results, study)] == ["not tested"]
    publish(results)
    (row,) = claims_of(results, study)
    assert (row["machine"], row["verdict"]) == ("published", "holds")
    assert row["measured"] == pytest.approx(2**30 / 1e9, rel=1e-3)
    assert row["reason"].endswith("in 2 if read in GiB/s and in 0 if read in GB/s, of 2 rows")
    publish(results, PUBLISHED.replace("7.45,GB", "8.00,GB"))
    (row,) = claims_of(results, study)
    assert row["verdict"] == "does not hold"


def test_a_printed_share_is_held_against_the_printed_time(tmp_path: Path) -> None:
    test = {"kind": "printed_share", "of": "fast", "limit": 64.0, "unit": "GB/s", "within": 0.01}
    study = write_study(tmp_path, claim(**test))
    results = tmp_path / "results"
    publish(results)
    (row,) = claims_of(results, study)
    assert (row["machine"], row["verdict"]) == ("published", "does not hold")
    assert row["published"] == pytest.approx(29.80 / 64)
    assert row["measured"] == pytest.approx(0.5)
    publish(results, PUBLISHED.replace("29.80", "32.00"))
    (row,) = claims_of(results, study)
    assert row["verdict"] == "holds"


def test_a_printed_speedup_is_of_one_source(tmp_path: Path) -> None:
    test = {"kind": "printed_speedup", "of": "fast", "over": "slow", "at_least": 3}
    study = write_study(tmp_path, claim(**test, source="Notes"))
    other = "slow,rows=1000000,gpu_time,5.0,ms,ms,Other,mean\n"
    results = tmp_path / "results"
    publish(results, PUBLISHED + other)
    (row,) = claims_of(results, study)
    assert (row["machine"], row["verdict"]) == ("published", "holds")
    assert row["measured"] == row["ci_low"] == row["ci_high"] == pytest.approx(4.0)
    publish(results, (PUBLISHED + other).replace("8.0000", "5.0000"))
    (row,) = claims_of(results, study)
    assert (row["verdict"], row["measured"]) == ("does not hold", pytest.approx(2.5))
    (row,) = claims_of(results, write_study(tmp_path, claim(**test, source="Other")))
    assert row["reason"] == "Other printed no rate of fast in this case"


@pytest.mark.parametrize(
    ("test", "verdict", "measured"),
    [
        ({"kind": "counts_per", "per": COUNTED, "at_least": 4}, "holds", 4),
        ({"kind": "counts_per", "per": COUNTED, "at_most": 3.9}, "does not hold", 4),
        ({"kind": "counts_over", "over": "slow", "at_least": 1.9}, "holds", 2),
        ({"kind": "counts_over", "over": "slow", "at_most": 1.9}, "does not hold", 2),
    ],
)
def test_counters_decide_without_an_interval(
    tmp_path: Path, test: dict[str, Any], verdict: str, measured: float
) -> None:
    study = write_study(tmp_path, claim(**test, of="fast", counter="lts__t_sectors.sum"))
    results = tmp_path / "results"
    measure(results, study)
    (row,) = claims_of(results, study)
    no_profile = "no fresh profile of fast has lts__t_sectors.sum in this case"
    assert (row["verdict"], row["reason"]) == ("not tested", no_profile)
    count(results, study, fast=200, slow=100)
    (row,) = claims_of(results, study)
    assert row["verdict"] == verdict
    assert row["measured"] == row["ci_low"] == row["ci_high"] == measured
    (tmp_path / "copy" / "fast.py").write_text("CHANGED = True\n")
    (row,) = claims_of(results, study)
    assert (row["verdict"], row["reason"]) == ("not tested", no_profile)
    count(results, study, fast=200, slow=100, status="not captured: no permission")
    (row,) = claims_of(results, study)
    assert (row["verdict"], row["reason"]) == ("not tested", no_profile)


def test_a_share_of_the_model(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="model_share", of="fast", at_least=0.97))
    results = tmp_path / "results"
    measure(results, study)
    (row,) = claims_of(results, study)
    assert (row["verdict"], row["reason"]) == ("not tested", "no model prediction")
    for predicted, verdict in ((1.99e-3, "holds"), (1.5e-3, "does not hold")):
        key = ["box", "copy", "fast", CASE, "gpu_time", predicted]
        model = pd.DataFrame([key], columns=NO_MODEL.columns)
        (row,) = claims_of(results, study, model)
        assert row["verdict"] == verdict
        assert row["measured"] == pytest.approx(predicted / 2e-3, rel=1e-3)


def test_what_is_skipped_stale_or_missing_is_not_tested(tmp_path: Path) -> None:
    entry = claim(kind="speedup", of="fast", over="slow", at_least=1.0)
    study = write_study(tmp_path, entry)
    results = tmp_path / "results"

    def reason() -> str:
        (row,) = claims_of(results, study)
        assert row["verdict"] == "not tested"
        return str(row["reason"])

    assert claims_of(results, study) == []
    measure(results, study, {"slow": 8e-3})
    assert reason() == "fast has not been measured in this case"
    samples = samples_of(study, study.variant("fast"), rounds=1, run=NEW)
    skipped = [
        replace(s, value=None, verified=0, status="skipped", reason="opt-in: set managed")
        for s in samples
    ]
    add_samples(results, study, "fast", skipped, NEW)
    assert reason() == "fast was skipped: opt-in: set managed"
    (results / "box" / "copy" / "fast.csv").unlink()
    measure(results, study, {"fast": 2e-3}, run=OLD)
    assert reason() == "fast and slow have not been measured in one run"
    measure(results, study, {"fast": 2e-3}, run=NEW)
    (row,) = claims_of(results, study)
    assert row["verdict"] == "holds"
    study.variant("fast").path.write_text("print('changed')\n")
    assert reason() == "the result of fast is stale"


def test_a_single_round_has_no_interval_to_decide(tmp_path: Path) -> None:
    row = verdict_on(
        tmp_path, claim(kind="speedup", of="fast", over="slow", at_least=1.0), rounds=1
    )
    assert row["verdict"] == "not tested"
    assert row["reason"] == "a single round gives no interval"


def test_unchecked_output_decides_nothing(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="speedup", of="fast", over="slow", at_least=1.0))
    results = tmp_path / "results"
    measure(results, study, {"slow": 8e-3})
    fast = [replace(s, verified=0) for s in samples_of(study, study.variant("fast"), run=NEW)]
    add_samples(results, study, "fast", fast, NEW)
    (row,) = claims_of(results, study)
    assert row["verdict"] == "not tested"
    assert row["reason"] == "the output of fast was not checked"


def test_a_claim_to_be_correct_flips_with_the_check(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="correct", of="fast"))
    results = tmp_path / "results"
    measure(results, study, {"slow": 8e-3})

    def found() -> tuple[str, str]:
        (row,) = claims_of(results, study)
        return str(row["verdict"]), str(row["reason"])

    assert found() == ("not tested", "fast has not been measured in this case")
    measure(results, study, {"fast": 2e-3}, run=OLD)
    assert found() == ("holds", "passed its check in 8 rounds")
    good = samples_of(study, study.variant("fast"), run=NEW)
    # One wrong round is enough.
    wrong = replace(good[0], value=None, verified=0, status="failed", reason="byte 3; 5 are wrong")
    rows = [wrong, *(s for s in good if s.round != wrong.round)]
    add_samples(results, study, "fast", rows, NEW)
    assert found() == ("does not hold", "failed its check: byte 3; 5 are wrong")
    study.variant("fast").path.write_text("print('changed')\n")
    assert found() == ("not tested", "the result of fast is stale")


def test_what_is_not_checked_or_skipped_is_not_said_to_be_correct(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="correct", of="fast"))
    results = tmp_path / "results"
    measure(results, study, {"slow": 8e-3})
    samples = samples_of(study, study.variant("fast"), run=NEW)
    for change, reason in (
        ({"verified": 0}, "the output of fast was not checked"),
        (
            {"value": None, "verified": 0, "status": "skipped", "reason": "no"},
            "fast was skipped: no",
        ),
    ):
        add_samples(results, study, "fast", [replace(s, **change) for s in samples], NEW)
        (row,) = claims_of(results, study)
        assert (row["verdict"], row["reason"]) == ("not tested", reason)
        (results / "box" / "copy" / "fast.csv").unlink()


def test_a_wrong_output_says_nothing_of_speed(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="speedup", of="fast", over="slow", at_least=1.0))
    results = tmp_path / "results"
    measure(results, study, {"slow": 8e-3})
    samples = samples_of(study, study.variant("fast"), run=NEW)
    wrong = [replace(s, value=None, verified=0, status="failed", reason="byte 3") for s in samples]
    add_samples(results, study, "fast", wrong, NEW)
    (row,) = claims_of(results, study)
    assert (row["verdict"], row["reason"]) == ("not tested", "fast failed its check: byte 3")


def test_the_reason_for_no_test_stands_on_every_machine(tmp_path: Path) -> None:
    study = write_study(tmp_path, {"id": "it", "says": "S", "untested": "needs two GPUs"})
    for machine in ("box", "other"):
        measure(tmp_path / "results", study, machine=machine)
    rows = claims_of(tmp_path / "results", study)
    assert [(row["machine"], row["verdict"], row["reason"]) for row in rows] == [
        ("box", "not tested", "needs two GPUs"),
        ("other", "not tested", "needs two GPUs"),
    ]


FASTER = {"kind": "speedup", "of": "fast", "over": "slow", "at_least": 3}


def edited(tmp_path: Path, change: Callable[[Sample], Sample]) -> dict[str, Any]:
    """The claim that `fast` is three times as fast, with its samples changed."""
    study = write_study(tmp_path, claim(**FASTER))
    results = tmp_path / "results"
    publish(results)
    measure(results, study)
    path = results / "box" / "copy" / "fast.csv"
    add_samples(results, study, "fast", [change(s) for s in read_samples(path)], NEW)
    (row,) = claims_of(results, study)
    return row


def test_rounds_with_several_modes_test_no_claim(tmp_path: Path) -> None:
    def jump(sample: Sample) -> Sample:
        assert sample.value is not None
        is_slow = sample.round % 2 and sample.unit == "s"
        return replace(sample, value=sample.value * (6 if is_slow else 1))

    row = edited(tmp_path, jump)
    assert row["verdict"] == "not tested"
    assert row["reason"] == "the rounds have 2 modes: no one figure stands for them"


@pytest.mark.parametrize(
    ("reason", "rounds", "verdict"),
    [
        ("hw_thermal_slowdown|sw_power_cap", 5, "not tested"),
        ("hw_slowdown", 4, "holds"),
        ("sw_power_cap", 8, "holds"),
    ],
)
def test_a_gpu_that_was_slowed_down_tests_no_claim(
    tmp_path: Path, reason: str, rounds: int, verdict: str
) -> None:
    row = edited(
        tmp_path, lambda sample: replace(sample, throttle=reason if sample.round < rounds else "")
    )
    assert row["verdict"] == verdict
    if verdict == "not tested":
        assert row["reason"] == "fast was slowed down in 62% of its samples"
