"""Verdicts of every kind of comparison, and the decision by an interval."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.study.claims.verdicts import Bound, Figure
from tests.study.claims.studies import (
    CASE,
    FEW_SMS,
    NEW,
    NO_MODEL,
    PUBLISHED,
    SECONDS,
    add_samples,
    claim,
    claims_of,
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


def test_mean_over_runs_may_decide_where_the_next_run_is_open(tmp_path: Path) -> None:
    tests = [
        {"kind": kind, "of": "fast", "metric": "gpu_time", "at_most": 2.2e-3}
        for kind in ("figure", "mean_figure")
    ]
    wide = {"kind": "speedup", "of": "wide", "over": "fast", "at_least": 1.0}
    study = write_study(
        tmp_path,
        {"id": "both", "says": "Both.", "all": tests},
        {"id": "mean", "says": "Only the mean.", "test": tests[1]},
        {"id": "open", "says": "Not even the mean.", "all": [*tests, wide]},
    )
    results, means = tmp_path / "results", (1.9e-3, 2.0e-3, 2.1e-3, 2.0e-3)
    for day, seconds in enumerate(means, start=1):
        if day == 3:
            untested = {part.comparison: part for part in parts_of(results, study)}
            reason = untested["fast gpu_time, mean over hosts"].reason
            assert reason == "a mean over hosts needs 3 of them, got 2"
        run = f"2026-02-0{day}T00:00:00Z"
        measure(results, study, seconds=SECONDS | {"fast": seconds}, noise=1e-4, run=run)
    said = {part.comparison: part for part in parts_of(results, study)}
    mean, expected = said["fast gpu_time, mean over hosts"], said["fast gpu_time"]
    assert (mean.verdict, expected.verdict) == ("holds", "not tested")
    assert mean.measured == pytest.approx(2e-3, rel=2e-3)
    assert expected.ci_low < mean.ci_low < mean.measured < mean.ci_high < expected.ci_high
    assert (
        f"on average over hosts it is ({mean.ci_low:.4g} to {mean.ci_high:.4g})" in expected.reason
    )
    assert [(row["verdict"], row["on_average"]) for row in claims_of(results, study)] == [
        ("not tested", "holds"),
        ("holds", ""),
        ("not tested", ""),
    ]


def test_a_claim_flips_when_the_data_do(tmp_path: Path) -> None:
    entry = claim(kind="speedup", of="fast", over="slow", within=0.2)
    assert verdict_on(tmp_path / "a", entry)["verdict"] == "holds"
    row = verdict_on(tmp_path / "b", entry, seconds=SECONDS | {"slow": 3e-3})
    assert row["verdict"] == "does not hold"
    assert row["published"] == pytest.approx(4.0)
    assert row["reason"] == "not within 20 % of the published: 3.2 to 4.8"


def test_published_figure_of_other_rows_is_compared_by_rate(tmp_path: Path) -> None:
    study = write_study(
        tmp_path, claim(kind="speedup", of="wide", over="fast", by="rate", within=0.1)
    )
    measure(tmp_path / "results", study)
    wide = "wide,rows=1000000,gpu_time,4.0,ms,ms,Notes,mean\n"
    publish(tmp_path / "results", PUBLISHED + wide)
    (row,) = claims_of(tmp_path / "results", study)
    assert (row["published"], row["verdict"]) == (pytest.approx(1.0), "does not hold")


def test_a_run_counts_in_a_mean_by_the_median_of_its_rounds(tmp_path: Path) -> None:
    entry = claim(kind="mean_figure", of="fast", metric="gpu_time", at_most=3e-3)
    study = write_study(tmp_path, entry)
    for run in (f"2026-02-0{day}T00:00:00Z" for day in (1, 2, 3)):
        measure(tmp_path / "results", study, run=run)
        samples = [
            replace(sample, value=2.8e-3 if sample.round > 4 else 2e-3)
            for sample in samples_of(study, study.variant("fast"), run=run)
        ]
        add_samples(tmp_path / "results", study, "fast", samples, run)
    (row,) = claims_of(tmp_path / "results", study)
    assert row["measured"] == pytest.approx(2e-3)


def move_to_host(run: Path, host: str) -> None:
    """Name another host in the description of a run, and in its name."""
    old = run.stem.partition("-")[2]
    text = run.read_text().replace(old, host * 8)
    run.with_name(run.name.replace(old, host * 8)).write_text(text)
    samples = run.with_suffix(".csv")
    samples.rename(samples.with_name(samples.name.replace(old, host * 8)))
    run.unlink()


def test_a_host_counts_once_in_a_mean_over_hosts(tmp_path: Path) -> None:
    entry = claim(kind="mean_figure", of="fast", metric="gpu_time", at_most=3e-3)
    study, results = write_study(tmp_path, entry), tmp_path / "results"
    for day, (host, seconds) in enumerate([("a", 2e-3), ("b", 4e-3), ("c", 1e-3), ("c", 1e-3)], 1):
        run = f"2026-02-0{day}T00:00:00Z"
        measure(results, study, seconds=SECONDS | {"fast": seconds}, run=run)
        move_to_host(max((results / "box" / study.name).glob("*.json")), host)
    (row,) = claims_of(results, study)
    assert row["hosts"] == 3
    assert row["measured"] == pytest.approx(2e-3, rel=1e-2)


def test_of_several_sources_the_first_is_the_published_one(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="figure", of="slow", metric="gpu_time", within=0.1))
    measure(tmp_path / "results", study)
    other = "slow,rows=1000000,gpu_time,5.0,ms,ms,Other,mean\n"
    publish(tmp_path / "results", PUBLISHED + other)
    (row,) = claims_of(tmp_path / "results", study)
    assert (row["published"], row["verdict"]) == (pytest.approx(8e-3), "holds")


def test_a_claim_pairs_the_visits_of_a_round(tmp_path: Path) -> None:
    # A slow period includes three of one variant's eight visits, and five of the other's.
    described = describe(
        claim(kind="speedup", of="fast", over="slow", at_least=1.9),
        claim(kind="figure", of="slow", metric="gpu_time", at_least=19) | {"id": "slow"},
    )
    described["cases"]["only"]["visits"] = 8
    study = described_study(tmp_path, described)
    measure(tmp_path / "results", study, {})
    for name, visits in (("fast", [1.0] * 5 + [10.0] * 3), ("slow", [2.0] * 3 + [20.0] * 5)):
        samples = [
            replace(sample, value=seconds, sample=number)
            for sample in samples_of(study, study.variant(name), rounds=2, run=NEW)
            for number, seconds in enumerate(visits)
        ]
        add_samples(tmp_path / "results", study, name, samples, NEW)
    paired, alone = claims_of(tmp_path / "results", study)
    assert (paired["measured"], paired["verdict"]) == (pytest.approx(2.0), "holds")
    assert (alone["measured"], alone["verdict"]) == (pytest.approx(20.0), "holds")


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
    assert said(0.9, 1.0, "at_least", 1.0) == "not tested"
    assert said(0.9, 0.99, "at_least", 1.0) == "does not hold"
    assert said(0.9, 1.0, "at_most", 1.0) == "holds"
    assert said(1.0, 1.2, "at_most", 1.0) == "not tested"
    assert said(1.01, 1.2, "at_most", 1.0) == "does not hold"
    assert said(9.1, 10.9, "within", 0.1) == "holds"
    assert said(6.0, 10.0, "within", 0.25, published=8) == "holds"
    assert said(5.0, 6.0, "within", 0.25, published=8) == "not tested"
    assert said(10.0, 11.0, "within", 0.25, published=8) == "not tested"
    assert said(8.0, 9.1, "within", 0.1) == "not tested"
    assert said(5.0, 40.0, "within", 0.1) == "not tested"
    assert said(8.0, 8.9, "within", 0.1) == "does not hold"
    assert said(11.1, 12.0, "within", 0.1) == "does not hold"
    assert said(math.nan, math.nan, "at_least", 1.0) == "not tested"


@pytest.mark.parametrize(
    ("bound", "mean", "on_average", "bound_in_words"),
    [
        (
            Bound("at_least", 1.0),
            (1.0, 1.1),
            "holds",
            "at least 1, though on average over hosts it is (1 to 1.1)",
        ),
        (
            Bound("at_most", 1.0),
            (1.01, 1.1),
            "does not hold",
            "at most 1, though on average over hosts it is not (1.01 to 1.1)",
        ),
        (
            Bound("within", 0.1),
            (0.95, 1.1),
            "holds",
            "within 10 % of the published: 0.9 to 1.1, though on average over hosts it is"
            " (0.95 to 1.1)",
        ),
        (Bound("at_least", 1.0), (0.95, 1.1), "", "at least 1"),
        (Bound("at_least", 1.0), (math.nan, math.nan), "", "at least 1"),
    ],
)
def test_open_prediction_may_hold_on_average(
    bound: Bound, mean: tuple[float, float], on_average: str, bound_in_words: str
) -> None:
    outcome = bound.judge(Figure(1.05, 0.8, 1.3, published=1.0, mean=mean))
    assert (outcome.verdict, outcome.on_average) == ("not tested", on_average)
    assert (
        outcome.reason == f"the interval 0.8 to 1.3 does not decide whether it is {bound_in_words}"
    )


def test_a_share_is_written_as_a_percentage(tmp_path: Path) -> None:
    described = describe(claim(**FEW_SMS, at_most=1))
    described["metrics"]["sms_used"]["share"] = True
    study = described_study(tmp_path, described)
    (known,) = study.claims
    assert known.write(0.042, study.units) == "4.2 %"
    assert known.tests[0].write_interval(0.042, 0.03, 0.05, "1") == "3.0 % to 5.0 %"
    metric = study.metrics["sms_used"]
    assert metric.write(0.5) == "50 %"
    assert metric.write_interval(0.5, 0.4, 0.6) == "40 % to 60 %"
    assert metric.write_interval(0.5, math.nan, math.nan) == ""


def test_the_room_to_a_bound_is_that_of_the_nearer_end() -> None:
    figure = Figure(3.0, 2.5, 4.0)
    assert Bound("at_least", 2.0).room(figure) == 0.25
    assert Bound("at_most", 5.0).room(figure) == 0.2
    assert Bound("at_most", 2.0).room(figure) == -1.0


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


def test_a_choice_is_near_the_best_in_a_share_of_the_cases(tmp_path: Path) -> None:
    near = {
        "kind": "near_best",
        "of": "fast",
        "metric": "gpu_time",
        "case": "rows=1",
        "also": ["rows=2", "rows=3"],
        "given": ["share=0", "share=1"],
        "slower": 1.05,
    }
    described = describe(claim(**near, at_least=0.6), claim(**near, at_least=0.7))
    described["claims"][1]["id"] = "more_of_them"
    payload = {"payload_bytes": "rows * row_bytes"}
    described["cases"] |= {
        "chosen": {"rows": [1, 2, 3], **payload},
        "given": {"rows": [1, 2, 3], "share": [0, 1], **payload},
    }
    described["variants"][1]["cases"] = ["only", "chosen", "given"]
    study = described_study(tmp_path, described)
    measure(tmp_path / "results", study, {})
    # The choice is the best one, 4 % slower, and 10 % slower.
    seconds = {"rows=1,share=0": 3e-3, "rows=1,share=1": 2e-3, "rows=2": 2.08e-3, "rows=3": 2.2e-3}
    samples = samples_of(
        study,
        study.variant("fast"),
        seconds=lambda variant, case, _: seconds.get(case.id, 2e-3),
        noise=1e-4,
        rounds=8,
        run=NEW,
    )
    add_samples(tmp_path / "results", study, "fast", samples, NEW)
    rows = claims_of(tmp_path / "results", study)
    assert [row["verdict"] for row in rows] == ["holds", "does not hold"]
    assert rows[0]["measured"] == pytest.approx(2 / 3)


def test_a_share_of_the_model(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="model_share", of="fast", at_least=0.97))
    results = tmp_path / "results"
    measure(results, study)
    (row,) = claims_of(results, study)
    assert (row["verdict"], row["reason"]) == ("not tested", "missing: no model prediction")
    for predicted, verdict in ((1.99e-3, "holds"), (1.5e-3, "does not hold")):
        rows = [
            ["another", "copy", "fast", CASE, "gpu_time", 9.0],
            ["box", "copy", "fast", "rows=2", "gpu_time", 9.0],
            ["box", "copy", "fast", CASE, "host_time", 9.0],
            ["box", "copy", "fast", CASE, "gpu_time", predicted],
        ]
        model = pd.DataFrame(rows, columns=NO_MODEL.columns)
        (row,) = claims_of(results, study, model)
        assert row["verdict"] == verdict
        assert row["measured"] == pytest.approx(predicted / 2e-3, rel=1e-3)


@pytest.mark.parametrize("name", ["at_least", "at_most"])
def test_a_figure_that_equals_its_bound_but_for_rounding_meets_it(name: str) -> None:
    for value in (24576.0, 3.0, 1e-5):
        end = math.exp(math.log(value))
        for low, high in ((end, end), (end * (1 - 1e-12), end * (1 + 1e-12))):
            figure = Figure(value, low, high)
            assert Bound(name, value).judge(figure).verdict == "holds"
