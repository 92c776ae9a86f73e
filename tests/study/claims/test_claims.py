"""Verdicts of every kind of comparison on files of results, which runs judge, and what cannot."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.study import Study
from analysis.study.claims.kinds import KINDS
from analysis.study.claims.verdicts import Figure, outcome_of, together
from tests.repository import STUDIES
from tests.study.claims.studies import (
    CASE,
    COUNTED,
    FEW_SMS,
    NEW,
    NO_MODEL,
    OLD,
    OTHER,
    PUBLISHED,
    SECONDS,
    SECTORS,
    SPEEDUP,
    claim,
    count,
    describe,
    judged,
    load,
    measure,
    publish,
    tables_of,
    write_study,
)
from tests.synthetic import Sample

FOURFOLD = claim(**SPEEDUP | {"at_least": 3})
CORRECT = claim("correct", kind="correct", of="fast")
UNITS = claim("units", kind="units", printed="GB/s", meant="GiB/s")
SLOW, FAST = ({name: SECONDS[name]} for name in ("slow", "fast"))
HALF = SECONDS | {"fast": 4e-3}
"""Seconds with which `fast` is only twice as fast as `slow`."""
RUNS = (OLD, NEW, "2026-01-03T00:00:00Z")
IN_OTHER: Mapping[Any, float] = SECONDS | {
    ("slow", OTHER): 8e-4,
    ("fast", OTHER): 5e-5,
    ("slow", f"{OTHER},share=0"): 5e-4,
}


def compared(kind: str, of: str, over: str = "", **keys: Any) -> dict[str, Any]:
    return {"kind": kind, "of": of, **({"over": over} if over else {}), **keys}


NEAR: dict[str, Any] = {"given": ["share=0", "share=1"], "slower": 1.05, "also": [OTHER]}
COMPARED: tuple[tuple[dict[str, Any], float], ...] = (
    (compared("speedup", "fast", "slow"), 4.0),
    (compared("speedup", "wide", "fast"), 1.0),
    (compared("speedup", "wide", "fast", by="rate"), 2.0),
    (compared("share", "slow", "fast"), 0.25),
    (compared("share", "wide", "fast"), 2.0),
    (compared("between_cases", "slow", over_case=OTHER), 5e4),
    (compared("figure", "fast", metric="gpu_time"), 2e-3),
    (compared("mean_figure", "fast", metric="gpu_time"), 2e-3),
    (compared("added_time", "slow", "fast"), 6e-3),
    (compared("model_share", "fast"), 0.75),
    (compared("counts_per", "fast", counter=SECTORS, per=COUNTED), 4),
    (compared("counts_over", "fast", "slow", counter=COUNTED), 2),
    (compared("mean_speedup", "fast", "slow", also=[OTHER]), math.sqrt(4 * 16)),
    (compared("near_best", "slow", **NEAR), 1 / 2),
    (compared("printed_share", "fast", limit=64.0, unit="GB/s"), 0.5),
    (compared("printed_speedup", "fast", "slow", source="Notes"), 4.0),
)
"""Comparisons, and the figure of each by IN_OTHER and what the test below adds."""


def test_each_kind_of_comparison_holds_or_not(tmp_path: Path) -> None:
    claims = [CORRECT, UNITS, claim("wrong", kind="correct", of="host")]
    expected: dict[str, tuple[float, str]] = {}
    for number, (test, figure) in enumerate(COMPARED):
        for bound, factor, verdict in (
            ("at_least", 0.9, "holds"),
            ("at_least", 1.1, "does not hold"),
            ("at_most", 1.1, "holds"),
            ("at_most", 0.9, "does not hold"),
        ):
            id = f"c{number}_{bound}_{verdict[0]}"
            claims.append(claim(id, **test, **{bound: figure * factor}))
            expected[id] = figure, verdict
    study, results = write_study(tmp_path, *claims), tmp_path / "results"
    for run in RUNS:
        measure(results, study, {k: v for k, v in IN_OTHER.items() if k != "host"}, run=run)
    measure(results, study, {"host": 1.0}, change=changing(**WRONG))
    count(results, study, fast=200, slow=100)
    publish(results, f"{PUBLISHED}slow,rows=1000000,gpu_time,5.0,ms,ms,Other,mean\n")
    predicted = ["box", "copy", "fast", CASE, "gpu_time", 1.5e-3]
    model = pd.DataFrame([predicted], columns=NO_MODEL.columns)
    rows = {row.claim: row for row in tables_of(results, study, model)[0]}
    for id, (figure, verdict) in expected.items():
        assert rows[id].measured == pytest.approx(figure, rel=2e-3), id
        assert rows[id].verdict == verdict, id
    assert rows["c14_at_most_h"].published == pytest.approx(29.80 / 64)
    assert (rows["correct"].verdict, rows["wrong"].verdict) == ("holds", "does not hold")
    kinds = {test["kind"] for test, _ in COMPARED} | {"correct", "units"}
    tests = [test for study in STUDIES.values() for one in study.claims for test in one.tests]
    assert {test.kind for test in tests} == {*KINDS} == kinds, "every kind is in use"


def test_printed_rates_have_the_unit_with_which_printed_times_agree(tmp_path: Path) -> None:
    study, results = write_study(tmp_path, UNITS), tmp_path / "results"
    reason = "in 2 if read in GiB/s and in 0 if read in GB/s, of 2 rows"
    for rate, verdict in ("7.45", "holds"), ("8.00", "does not hold"), ("7.46", "does not hold"):
        publish(results, PUBLISHED.replace("7.45", rate))
        (row,) = judged(results, study).values()
        assert row.verdict == verdict and row.reason.endswith(reason) == (verdict == "holds")
    publish(results, PUBLISHED.partition("\n")[0] + "\n")
    assert judged(results, study)["units"].verdict == "not tested"


def test_a_printed_speedup_is_of_one_source(tmp_path: Path) -> None:
    test = compared("printed_speedup", "fast", "slow", source="Other", at_least=3)
    study = write_study(tmp_path, claim(**test))
    publish(tmp_path / "results", PUBLISHED + "slow,rows=1000000,gpu_time,5,ms,ms,Other,mean\n")
    reason = judged(tmp_path / "results", study)["it"].reason
    assert reason == "missing: Other printed no rate of fast in this case"


ENDS: Mapping[str, tuple[tuple[float, float, str, float], ...]] = {
    "holds": (
        *((1.0, 1.2, "at_least", 1.0), (0.9, 1.0, "at_most", 1.0), (9.1, 10.9, "within", 0.1)),
        *((3 - 1e-12, 3 + 1e-12, bound, 3.0) for bound in ("at_least", "at_most")),  # rounding
    ),
    "not tested": (
        *((0.9, 1.2, "at_least", 1.0), (0.9, 1.0, "at_least", 1.0), (1.0, 1.2, "at_most", 1.0)),
        *((5.0, 40.0, "within", 0.1), (math.nan, math.nan, "at_least", 1.0)),
    ),
    "does not hold": (
        *((0.9, 0.99, "at_least", 1.0), (1.01, 1.2, "at_most", 1.0)),
        *((8.0, 8.9, "within", 0.1), (11.1, 12.0, "within", 0.1)),
    ),
}
ON_AVERAGE = (
    (("at_least", 1.0), (1.0, 1.1), "holds", "at least 1, though on average over hosts"),
    (("at_most", 1.0), (1.01, 1.1), "does not hold", "hosts it is not (1.01 to 1.1)"),
    (("within", 0.1), (0.95, 1.1), "holds", "within 10 % of the published: 0.9 to 1.1, t"),
    (("at_least", 1.0), (0.95, 1.1), "", "the interval 0.8 to 1.3 does not decide"),
)


def test_the_ends_of_an_interval_decide_and_those_of_a_mean_over_hosts() -> None:
    for verdict, intervals in ENDS.items():
        for low, high, bound, value in intervals:
            figure = Figure((low + high) / 2, low, high, published=10)
            assert outcome_of(figure, bound, value).verdict == verdict, (low, high, bound)
    for (bound, value), mean, on_average, reason in ON_AVERAGE:
        outcome = outcome_of(Figure(1.05, 0.8, 1.3, published=1.0, mean=mean), bound, value)
        assert (outcome.verdict, outcome.on_average) == ("not tested", on_average)
        assert reason in outcome.reason
    assert together(["holds", "holds"]) == "holds"
    assert together(["holds", "not tested"]) == "not tested"
    assert together(["not tested", "does not hold"]) == "does not hold"


def test_figures_are_written_in_the_form_of_their_kind(tmp_path: Path) -> None:
    added = claim("added", kind="added_time", of="slow", over="fast", at_least=1)
    described = describe(claim(**FEW_SMS, at_most=1), added)
    described["metrics"]["sms_used"]["share"] = True
    share, time = load(tmp_path, described).claims
    assert share.write(0.042) == "4.2 %"
    assert share.tests[0].written_unit == "%"
    assert (time.write(6e-3), time.tests[0].figure_unit) == ("6.000 ms", "s")
    figure = Figure(3.0, 2.5, 4.0)
    rooms = [share.tests[0].model_copy(update=b).room(figure) for b in ({}, {"at_least": 2})]
    assert rooms == [-3.0, 0.25]


def changing(**values: Any) -> Callable[[Sample], Sample]:
    return lambda sample: replace(sample, **values)


WRONG: dict[str, Any] = {"value": None, "verified": 0, "status": "failed", "reason": "byte 3"}
SKIPPED: dict[str, Any] = WRONG | {"status": "skipped", "reason": "no"}
NO_SAMPLES = "missing: fast has not been measured in this case"
UNCHECKED = "missing: the output of fast was not checked"
FAILED = "fast failed its check: byte 3", "failed its check: byte 3"
APART = "missing: fast and slow have not been measured in one run"
STATES: Mapping[str, tuple[Callable[[Sample], Sample] | None, str, str]] = {
    "missing": (None, NO_SAMPLES, NO_SAMPLES),
    "skipped": (changing(**SKIPPED), "fast was skipped: no", "fast was skipped: no"),
    "unchecked": (changing(verified=0), UNCHECKED, UNCHECKED),
    "unchecked once": (lambda s: replace(s, verified=s.round % 2), "at least 3", UNCHECKED),
    "wrong": (changing(**WRONG), *FAILED),
    "wrong once": (lambda s: replace(s, **WRONG) if s.round == 3 else s, *FAILED),
    "in another run": (changing(), APART, "passed its check in 8 rounds"),
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
        measure(results, study, FAST, run=OLD if state == "in another run" else NEW, change=change)
    rows = judged(results, study)
    assert (rows["it"].reason, rows["correct"].reason) == (speed, check)
    verdicts = {speed: "not tested", "at least 3": "holds"}
    assert rows["it"].verdict == verdicts[speed]
    holds = {"passed": "holds", "failed": "does not hold"}.get(check.split()[0], "not tested")
    assert rows["correct"].verdict == holds
    study.variant("fast").path.write_text("print('changed')\n")
    reasons = {row.reason for row in judged(results, study).values()}
    assert state in ("missing", "skipped") or reasons == {"measured with other code: fast"}


@pytest.mark.parametrize(
    ("reason", "rounds"),
    [("hw_slowdown|sw_power_cap", 33), ("hw_slowdown", 32), ("sw_power_cap", 64)],
)
def test_throttled_gpu_tests_no_claim(tmp_path: Path, reason: str, rounds: int) -> None:
    study, results = write_study(tmp_path, FOURFOLD), tmp_path / "results"
    measure(results, study, FAST, rounds=64)

    def change(one: Sample) -> Sample:
        return replace(one, throttle=reason * (one.round < rounds and one.case == CASE))

    measure(results, study, SLOW, rounds=64, change=change)
    row = judged(results, study)["it"]
    said = "slow was slowed down in 52% of its samples" if rounds == 33 else "at least 3"
    assert (row.reason, row.verdict == "holds") == (said, rounds != 33)


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


def test_a_host_counts_once_in_a_mean_by_the_medians_of_its_rounds(tmp_path: Path) -> None:
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
    given = claim("given", **speedup) | {"published": 9}
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


def test_digest_includes_the_headline_but_not_the_words(tmp_path: Path) -> None:
    def digests(claim: Mapping[str, Any], **keys: Any) -> tuple[str, ...]:
        return load(tmp_path, describe(claim) | keys).claims[0].bounds

    same = digests(FOURFOLD)
    assert same == digests({**FOURFOLD, "says": "In other words."})
    assert same != digests(FOURFOLD, headline={"rows": 2})
    assert same != digests(claim(**SPEEDUP | {"at_least": 4}))
    assert digests({"id": "it", "says": "So.", "untested": "why"}) == ()
    # A comparison in each of several cases is that of one entry a case.
    apart = {"id": "it", "says": "So.", "all": [SPEEDUP | {"case": case} for case in (CASE, OTHER)]}
    assert digests(apart) == digests(apart | {"all": [SPEEDUP | {"in_each": [CASE, OTHER]}]})
    # A run names those of claims that compare its variants.
    wide = claim("wide", **SPEEDUP | {"of": "wide", "by": "rate"})
    study = write_study(tmp_path, FOURFOLD, wide, UNITS)
    expected = {"slow": ["it", "wide"], "fast": ["it"], "wide": ["wide"], "host": []}
    assert {name: [*study.bounds_of(name)] for name in expected} == expected
    assert study.bounds_of("fast") == {"it": [*same]} == {"it": ["046a1f1d9b94"]}, "as runs have it"
