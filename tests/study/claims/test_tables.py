"""Verdicts on files of results: which runs judge, what tests no claim, and claims of parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.study import Study
from analysis.study.claims.claim import digests
from tests.study.claims.studies import (
    CASE,
    COUNTED,
    NEW,
    OLD,
    PUBLISHED,
    SECONDS,
    SECTORS,
    SPEEDUP,
    UNITS,
    claim,
    count,
    describe,
    judged,
    measure,
    publish,
    tables_of,
    write_study,
)
from tests.synthetic import Sample

FOURFOLD = claim(**SPEEDUP | {"at_least": 3})
CORRECT = claim("correct", kind="correct", of="fast")
SLOW, FAST = ({name: SECONDS[name]} for name in ("slow", "fast"))
HALF = SECONDS | {"fast": 4e-3}
"""Seconds with which `fast` is only twice as fast as `slow`."""


def changing(**values: Any) -> Callable[[Sample], Sample]:
    return lambda sample: replace(sample, **values)


WRONG: dict[str, Any] = {"value": None, "verified": 0, "status": "failed", "reason": "byte 3"}
NO_SAMPLES = "missing: fast has not been measured in this case"
UNCHECKED = "missing: the output of fast was not checked"
SKIPPED: dict[str, Any] = WRONG | {"status": "skipped", "reason": "no"}
STATES: Mapping[str, tuple[Callable[[Sample], Sample] | None, str, str]] = {
    "missing": (None, NO_SAMPLES, NO_SAMPLES),
    "skipped": (changing(**SKIPPED), "fast was skipped: no", "fast was skipped: no"),
    "unchecked": (changing(verified=0), UNCHECKED, UNCHECKED),
    "wrong": (changing(**WRONG), "fast failed its check: byte 3", "failed its check: byte 3"),
    "good": (changing(), "at least 3", "passed its check in 8 rounds"),
}
"""Samples of `fast`, and the reasons of verdicts on its speed-up and on its check."""


@pytest.mark.parametrize("state", STATES)
def test_unchecked_or_wrong_output_tests_no_speed(tmp_path: Path, state: str) -> None:
    study, results = write_study(tmp_path, FOURFOLD, CORRECT), tmp_path / "results"
    assert judged(results, study) == {}
    measure(results, study, SLOW)
    change, speed, check = STATES[state]
    if change:
        measure(results, study, FAST, change=change)
    rows = judged(results, study)
    assert (rows["it"].reason, rows["correct"].reason) == (speed, check)
    assert rows["it"].verdict == ("holds" if state == "good" else "not tested")
    verdicts = {"good": "holds", "wrong": "does not hold"}
    assert rows["correct"].verdict == verdicts.get(state, "not tested")
    study.variant("fast").path.write_text("print('changed')\n")
    reasons = {row.reason for row in judged(results, study).values()}
    assert state in ("missing", "skipped") or reasons == {"measured with other code: fast"}


def test_samples_of_two_runs_are_not_compared(tmp_path: Path) -> None:
    study, results = write_study(tmp_path, FOURFOLD), tmp_path / "results"
    measure(results, study, SLOW)
    measure(results, study, FAST, run=OLD)
    reason = "missing: fast and slow have not been measured in one run"
    assert judged(results, study)["it"].reason == reason


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda s: replace(s, **WRONG) if s.round == 3 else s, "does not hold"),
        (lambda s: replace(s, verified=s.round % 2), "not tested"),
    ],
)
def test_one_wrong_or_unchecked_round_is_enough(
    tmp_path: Path, change: Callable[[Sample], Sample], verdict: str
) -> None:
    study, results = write_study(tmp_path, CORRECT), tmp_path / "results"
    measure(results, study, SLOW)
    measure(results, study, FAST, change=change)
    assert judged(results, study)["correct"].verdict == verdict


@pytest.mark.parametrize(
    ("reason", "rounds", "case", "verdict"),
    [
        ("hw_thermal_slowdown|sw_power_cap", 33, CASE, "not tested"),
        ("hw_slowdown", 32, CASE, "holds"),
        ("hw_slowdown", 64, "rows=2", "holds"),
        ("sw_power_cap", 64, CASE, "holds"),
    ],
)
def test_throttled_gpu_tests_no_claim(
    tmp_path: Path, reason: str, rounds: int, case: str, verdict: str
) -> None:
    study, results = write_study(tmp_path, FOURFOLD), tmp_path / "results"
    measure(results, study, FAST, rounds=64)

    def change(one: Sample) -> Sample:
        return replace(one, throttle=reason * (one.round < rounds and one.case == case))

    measure(results, study, SLOW, rounds=64, change=change)
    row = judged(results, study)["it"]
    assert row.verdict == verdict
    if verdict == "not tested":
        assert row.reason == "slow was slowed down in 52% of its samples"


def test_each_part_has_a_row_and_the_deciding_one_comes_first(tmp_path: Path) -> None:
    tests = [
        {"kind": "speedup", "of": "fast", "over": "slow", "at_least": 3.9},
        {"kind": "figure", "of": "fast", "metric": "gpu_time", "within": 0.1},
        {"kind": "correct", "of": "fast"},
        {"kind": "speedup", "of": "wide", "over": "fast", "by": "rate", "at_most": 1.5},
    ]
    untested = {"id": "why", "says": "So.", "untested": "needs two GPUs"}
    study = write_study(tmp_path, {"id": "it", "says": "All.", "all": tests}, CORRECT, untested)
    results = tmp_path / "results"
    publish(results)
    for machine in ("box", "other"):
        measure(results, study, machine=machine)
    claims, rows = tables_of(results, study)
    reasons = [(row.machine, row.verdict, row.reason) for row in claims if row.claim == "why"]
    assert reasons == [(name, "not tested", "needs two GPUs") for name in ("box", "other")]
    rows = [row for row in rows if row.machine == "box"]
    assert [(row.part, row.comparison, row.verdict) for row in rows] == [
        (4, "wide over fast by rate", "does not hold"),
        (2, "fast gpu_time", "holds"),
        (3, "fast", "holds"),
        (1, "fast over slow", "holds"),
    ]
    by_rate, time, check, speedup = rows
    assert by_rate.reason == "not at most 1.5"
    assert (by_rate.measured, by_rate.ci_low, by_rate.ci_high) == pytest.approx((2,) * 3, rel=1e-3)
    assert (time.published, speedup.published) == pytest.approx((2e-3, 4))
    assert check.reason == "passed its check in 8 rounds" and math.isnan(check.measured)
    assert check.sentence(with_case=True) == f"fast in {check.case}: {check.reason}"
    (reason,) = [row.reason for row in claims if (row.claim, row.machine) == ("it", "box")]
    assert reason == "; ".join(row.sentence(with_case=False) for row in rows)


def test_a_host_counts_once_in_a_mean_over_hosts_by_the_medians_of_its_rounds(
    tmp_path: Path,
) -> None:
    entry = claim(kind="mean_figure", of="fast", metric="gpu_time", at_most=3e-3)
    study, results = write_study(tmp_path, entry), tmp_path / "results"
    for day, (host, seconds) in enumerate([("a", 2e-3), ("b", 4e-3), ("c", 1e-3), ("c", 1e-3)], 1):
        if day == 3:
            reason = judged(results, study)["it"].reason
            assert reason == "a mean over hosts needs 3 of them, got 2"

        def change(sample: Sample) -> Sample:
            return replace(sample, value=(sample.value or 0) * (1.4 if sample.round > 4 else 1))

        run = f"2026-02-0{day}T00:00:00Z"
        measure(results, study, {"fast": seconds}, run=run, change=change, host=host * 8)
    row = judged(results, study)["it"]
    assert row.hosts == 3 and row.measured == pytest.approx(2e-3, rel=1e-2)


def test_published_figure_is_that_of_the_entry_or_of_the_first_source(tmp_path: Path) -> None:
    speedup: dict[str, Any] = {"kind": "speedup", "of": "fast", "over": "slow", "within": 0.1}
    given = claim("given", **speedup) | {"published": {"value": 9, "unit": "1"}}
    study = write_study(
        tmp_path,
        claim(kind="figure", of="slow", metric="gpu_time", within=0.1),
        claim("by_rate", **speedup | {"of": "wide", "over": "fast", "by": "rate"}),
        given,
        claim("none", **speedup | {"of": "host"}),
    )
    results = tmp_path / "results"
    measure(results, study)
    other = "slow,rows=1000000,gpu_time,5.0,ms,ms,Other,mean\n"
    publish(results, f"{PUBLISHED}{other}wide,rows=1000000,gpu_time,4.0,ms,ms,Notes,mean\n")
    rows = judged(results, study)
    published = [rows[name].published for name in ("it", "by_rate", "given")]
    assert published == pytest.approx([8e-3, 1.0, 9.0])
    verdicts = [row.verdict for row in rows.values()]
    assert verdicts == ["holds", "does not hold", "does not hold", "not tested"]
    assert "no published figure" in rows["none"].reason


def test_a_claim_pairs_the_visits_of_a_round(tmp_path: Path) -> None:
    # A slow period includes three of one variant's eight visits, and five of the other's.
    study = write_study(tmp_path, claim(**SPEEDUP), visits=8)
    visits = {"fast": [1.0] * 5 + [10.0] * 3, "slow": [2.0] * 3 + [20.0] * 5}
    for name, seconds in visits.items():
        measure(tmp_path / "results", study, {name: 1.0}, rounds=2, visits=seconds)
    row = judged(tmp_path / "results", study)["it"]
    assert row.measured == pytest.approx(2.0, rel=1e-3) and row.verdict == "holds"


def two_runs(tmp_path: Path, *claims: Mapping[str, Any], then: list[Any]) -> Study:
    """A study with `claims` and two runs of it; in the older one `fast` is half as fast. Each names
    the claims of `then`."""
    study = write_study(tmp_path / "now", *claims)
    for run, seconds, known in zip((OLD, NEW), (HALF, SECONDS), then, strict=True):
        named = write_study(tmp_path / run, *known) if known else None
        measure(tmp_path / "now" / "results", study, seconds, run=run, then=named)
    return study


def test_only_runs_that_name_the_bound_judge_it(tmp_path: Path) -> None:
    study, results = two_runs(tmp_path, FOURFOLD, then=[[], [FOURFOLD]]), tmp_path / "now/results"
    row = judged(results, study)["it"]
    assert (row.verdict, row.bound, row.runs, row.judging) == ("holds", "before", 2, 1)
    assert row.judged == pytest.approx(4, rel=1e-3)
    for run in ("2025-12-30T00:00:00Z", "2025-12-31T00:00:00Z"):  # the others stay in the figure
        measure(results, study, HALF, run=run)
    row = judged(results, study)["it"]
    assert (row.runs, row.judging, row.verdict) == (4, 1, "holds")
    assert row.measured == pytest.approx(2, rel=1e-3)
    assert row.ci_low < 2 and row.ci_high > 4, "an interval for another run"
    assert 3.9 < row.judged_low < row.judged < row.judged_high < 4.1


def test_a_comparison_stays_named_in_another_claim_unless_one_was_dropped(tmp_path: Path) -> None:
    tests = [{**SPEEDUP, "at_least": bound} for bound in (2, 3)]
    both: dict[str, Any] = {"id": "both", "says": "So.", "all": tests}
    one, two = (claim(f"at_least_{test['at_least']}", **test) for test in tests)
    for name, now, then, bound in (
        ("changed", [one], [two], "afterwards"),
        ("divided", [one, two], [both], "before"),
        ("joined", [both], [one, two], "before"),
        ("halved", [two], [both], "afterwards"),
    ):
        study = two_runs(tmp_path / name, *now, then=[then, then])
        rows = judged(tmp_path / name / "now" / "results", study)
        assert {row.bound for row in rows.values()} == {bound}, name


def test_a_profile_judges_the_bounds_that_it_names(tmp_path: Path) -> None:
    test: dict[str, Any] = {"kind": "counts_per", "of": "fast", "per": COUNTED}
    study = write_study(
        tmp_path, claim(**test, counter=SECTORS, at_least=3), FOURFOLD | {"id": "other"}
    )
    assert list(study.bounds_of("fast", counted=True)) == ["it"]
    results = tmp_path / "results"
    measure(results, study, run=OLD, then=study)
    for then, bound in ((None, "afterwards"), (study, "before")):
        count(results, study, then, fast=100)
        row = judged(results, study)["it"]
        assert (row.verdict, row.bound) == ("holds", bound)


def test_digest_includes_the_headline_but_not_the_words() -> None:
    study = describe(FOURFOLD)
    assert digests(study) == digests(describe({**FOURFOLD, "says": "In other words."}))
    assert digests(study) != digests(study | {"headline": {"rows": 2}})
    assert digests(study) != digests(describe(claim(**SPEEDUP | {"at_least": 4})))
    assert digests(describe({"id": "it", "says": "So.", "untested": "why"})) == {}
    # A comparison in each of several cases is that of one entry a case.
    cases = ["rows=1", "rows=2"]
    apart = {"id": "it", "says": "So.", "all": [SPEEDUP | {"case": case} for case in cases]}
    joined = apart | {"all": [SPEEDUP | {"in_each": cases}]}
    assert digests(describe(joined)) == digests(describe(apart))


def test_a_variant_has_the_claims_that_compare_it(tmp_path: Path) -> None:
    other = claim("other", **SPEEDUP | {"of": "wide", "by": "rate"})
    study = write_study(tmp_path, FOURFOLD, other, claim("units", **UNITS))
    expected = {"slow": ["it", "other"], "fast": ["it"], "wide": ["other"], "host": []}
    assert {name: [*study.bounds_of(name)] for name in expected} == expected
    assert study.bounds_of("fast") == {"it": [*digests(describe(FOURFOLD))["it"]]}
