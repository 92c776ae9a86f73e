"""Verdicts of every kind of comparison, and the decision by an interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.study.claims.kinds import KINDS
from analysis.study.claims.verdicts import Figure, outcome_of, room, together
from tests.repository import STUDIES
from tests.study.claims.studies import (
    CASE,
    COUNTED,
    FEW_SMS,
    NEW,
    NO_MODEL,
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
    write_study,
)
from tests.synthetic import samples_of

SPEEDUP = {"kind": "speedup", "of": "fast", "over": "slow"}
BY_RATE = {"kind": "speedup", "of": "wide", "over": "fast", "by": "rate"}
SHARE = {"kind": "share", "of": "fast", "over": "limit"}
BETWEEN = {"kind": "between_cases", "of": "slow", "over_case": "rows=2"}
SMS = {"kind": "figure", "of": "fast", "metric": "sms_used"}
TIME = {"kind": "figure", "of": "slow", "metric": "gpu_time"}
ADDED = {"kind": "added_time", "of": "slow", "over": "fast"}
MODEL = {"kind": "model_share", "of": "fast"}
COUNTER = {"of": "fast", "counter": "lts__t_sectors.sum"}
UNITS = {"kind": "units", "printed": "GB/s", "meant": "GiB/s"}
PRINTED = {"kind": "printed_share", "of": "fast", "limit": 64.0, "unit": "GB/s"}
SOURCE = {"kind": "printed_speedup", "of": "fast", "over": "slow", "source": "Notes"}

COMPARED: tuple[tuple[Mapping[str, Any], float, str], ...] = (
    (SPEEDUP, 4.0, "1"),
    (BY_RATE, 2.0, "1"),
    (SPEEDUP | {"of": "wide", "over": "fast"}, 1.0, "1"),
    (SPEEDUP | {"of": "host"}, 2.0, "1"),
    (SHARE, 0.5, "1"),
    (SHARE | {"of": "wide"}, 1.0, "1"),
    (BETWEEN, 5e5, "1"),
    (SMS, 16.0, "1"),
    (TIME, 8e-3, "s"),
    (ADDED, 6e-3, "s"),
    (MODEL, 0.995, "1"),
    ({"kind": "counts_per", "per": COUNTED, **COUNTER}, 4, "1"),
    ({"kind": "counts_over", "over": "slow", **COUNTER}, 2, "1"),
    (PRINTED, 0.5, "1"),
    (SOURCE, 4.0, "1"),
)
"""Comparisons, the figure of each with the samples below, and its unit."""


def test_each_comparison_both_ways(tmp_path: Path) -> None:
    claims, expected = [], {}
    for number, (test, figure, unit) in enumerate(COMPARED):
        for bound, factor, verdict in (
            ("at_least", 0.97, "holds"),
            ("at_least", 1.03, "does not hold"),
            ("at_most", 1.03, "holds"),
            ("at_most", 0.97, "does not hold"),
        ):
            name = f"c{number}_{bound}_{verdict.replace(' ', '_')}"
            claims.append({"id": name, "says": "So.", "test": {**test, bound: figure * factor}})
            expected[name] = verdict, figure, unit
    study, results = write_study(tmp_path, *claims), tmp_path / "results"
    publish(results)
    measure(results, study)
    count(results, study, fast=200, slow=100)
    found = [["box", "copy", "fast", CASE, "gpu_time", 1.99e-3]]
    others = [
        ["another", "copy", "fast", CASE, "gpu_time", 9.0],
        ["box", "copy", "fast", "rows=2", "gpu_time", 9.0],
        ["box", "copy", "fast", CASE, "host_time", 9.0],
    ]
    model = pd.DataFrame(others + found, columns=NO_MODEL.columns)
    rows = {row["claim"]: row for row in claims_of(results, study, model)}
    assert rows.keys() == expected.keys()
    for name, (verdict, figure, unit) in expected.items():
        row = rows[name]
        assert row["verdict"] == verdict, (name, row["reason"])
        assert row["measured"] == pytest.approx(figure, rel=1e-2)
        assert row["ci_low"] <= row["measured"] <= row["ci_high"]
        assert (row["unit"], row["case"]) == (unit, CASE)


def test_every_kind_is_in_use() -> None:
    tests = [test for study in STUDIES.values() for one in study.claims for test in one.tests]
    assert {type(test) for test in tests} == set(KINDS.values())


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
    assert [(row["verdict"], row["on_average"]) for row in claims_of(results, study)] == [
        ("not tested", "holds"),
        ("holds", ""),
        ("not tested", ""),
    ]


def move_to_host(run: Path, host: str) -> None:
    """Name another host in the description of a run, and in its name."""
    old = run.stem.partition("-")[2]
    text = run.read_text().replace(old, host * 8)
    run.with_name(run.name.replace(old, host * 8)).write_text(text)
    samples = run.with_suffix(".csv")
    samples.rename(samples.with_name(samples.name.replace(old, host * 8)))
    run.unlink()


def test_a_host_counts_once_in_a_mean_over_hosts_by_the_medians_of_its_rounds(
    tmp_path: Path,
) -> None:
    entry = claim(kind="mean_figure", of="fast", metric="gpu_time", at_most=3e-3)
    study, results = write_study(tmp_path, entry), tmp_path / "results"
    for day, (host, seconds) in enumerate([("a", 2e-3), ("b", 4e-3), ("c", 1e-3), ("c", 1e-3)], 1):
        run = f"2026-02-0{day}T00:00:00Z"
        measure(results, study, run=run)
        samples = [
            replace(sample, value=seconds * (1.4 if sample.round > 4 else 1))
            for sample in samples_of(study, study.variant("fast"), run=run)
        ]
        add_samples(results, study, "fast", samples, run)
        move_to_host(max((results / "box" / study.name).glob("*.json")), host)
    (row,) = claims_of(results, study)
    assert row["hosts"] == 3
    assert row["measured"] == pytest.approx(2e-3, rel=1e-2)


def test_published_figure_is_that_of_the_entry_or_of_the_first_source(tmp_path: Path) -> None:
    test = {"kind": "figure", "of": "slow", "metric": "gpu_time", "within": 0.1}
    by_rate = {"id": "by_rate", "says": "So.", "test": BY_RATE | {"within": 0.1}}
    given = {"id": "given", "says": "So.", "test": SPEEDUP | {"within": 0.1}}
    host = {"id": "none", "says": "So.", "test": SPEEDUP | {"of": "host", "within": 0.1}}
    given["published"] = {"value": 9, "unit": "1"}
    study = write_study(tmp_path, claim(**test), by_rate, given, host)
    measure(tmp_path / "results", study)
    other = "slow,rows=1000000,gpu_time,5.0,ms,ms,Other,mean\n"
    wide = "wide,rows=1000000,gpu_time,4.0,ms,ms,Notes,mean\n"
    publish(tmp_path / "results", PUBLISHED + other + wide)
    rows = {row["claim"]: row for row in claims_of(tmp_path / "results", study)}
    found = {name: (row["published"], row["verdict"]) for name, row in rows.items()}
    assert found["it"] == (pytest.approx(8e-3), "holds")
    assert found["by_rate"] == (pytest.approx(1.0), "does not hold")
    assert found["given"] == (9.0, "does not hold")
    assert found["none"][1] == "not tested"
    assert "no published figure" in rows["none"]["reason"]


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


ENDS = {
    "holds": [
        *((1.0, 1.2, "at_least", 1.0), (0.9, 1.0, "at_most", 1.0)),
        *((9.1, 10.9, "within", 0.1), (7.5, 12.5, "within", 0.25)),
    ],
    "not tested": [
        *((0.9, 1.2, "at_least", 1.0), (0.9, 1.0, "at_least", 1.0), (1.0, 1.2, "at_most", 1.0)),
        *((5.0, 40.0, "within", 0.1), (math.nan, math.nan, "at_least", 1.0)),
    ],
    "does not hold": [
        *((0.9, 0.99, "at_least", 1.0), (1.01, 1.2, "at_most", 1.0)),
        *((8.0, 8.9, "within", 0.1), (11.1, 12.0, "within", 0.1)),
    ],
}


def test_the_ends_of_an_interval_decide() -> None:
    for verdict, intervals in ENDS.items():
        for low, high, bound, value in intervals:
            figure = Figure((low + high) / 2, low, high, published=10)
            assert outcome_of(figure, bound, value).verdict == verdict, (low, high, bound)
    for value in (24576.0, 3.0, 1e-5):  # equal to the bound but for rounding
        end = math.exp(math.log(value))
        figure = Figure(value, end * (1 - 1e-12), end * (1 + 1e-12))
        for bound in ("at_least", "at_most"):
            assert outcome_of(figure, bound, value).verdict == "holds"
    assert together(["holds", "holds"]) == "holds"
    assert together(["holds", "not tested"]) == "not tested"
    assert together(["not tested", "does not hold"]) == "does not hold"
    figure = Figure(3.0, 2.5, 4.0)
    rooms = [room(figure, *bound) for bound in (("at_least", 2), ("at_most", 5), ("at_most", 2))]
    assert rooms == [0.25, 0.2, -1.0]


@pytest.mark.parametrize(
    ("bound", "mean", "on_average", "reason"),
    [
        (("at_least", 1.0), (1.0, 1.1), "holds", "at least 1, though on average over hosts"),
        (("at_most", 1.0), (1.01, 1.1), "does not hold", "hosts it is not (1.01 to 1.1)"),
        (("within", 0.1), (0.95, 1.1), "holds", "within 10 % of the published: 0.9 to 1.1, t"),
        (("at_least", 1.0), (0.95, 1.1), "", "the interval 0.8 to 1.3 does not decide"),
        (("at_least", 1.0), (math.nan, math.nan), "", "whether it is at least 1"),
    ],
)
def test_open_prediction_may_hold_on_average(
    bound: tuple[str, float], mean: tuple[float, float], on_average: str, reason: str
) -> None:
    outcome = outcome_of(Figure(1.05, 0.8, 1.3, published=1.0, mean=mean), *bound)
    assert (outcome.verdict, outcome.on_average) == ("not tested", on_average)
    assert reason in outcome.reason


def test_figures_are_written_in_the_form_of_their_kind(tmp_path: Path) -> None:
    described = describe(claim(**FEW_SMS, at_most=1), claim(**ADDED, at_least=1) | {"id": "added"})
    described["metrics"]["sms_used"]["share"] = True
    share, added = described_study(tmp_path, described).claims
    units = {"sms_used": "1"}
    assert share.write(0.042, units) == "4.2 %"
    assert share.tests[0].write_interval(0.042, 0.03, 0.05, "1") == "3.0 % to 5.0 %"
    assert added.write(6e-3, units) == "6.000 ms"


def test_a_mean_over_cases_is_geometric_and_a_choice_is_near_the_best(tmp_path: Path) -> None:
    mean = {"kind": "mean_speedup", "of": "fast", "over": "slow", "also": ["rows=2"]}
    near: dict[str, Any] = {"kind": "near_best", "of": "fast", "metric": "gpu_time"}
    near |= {"case": "rows=1", "also": ["rows=2", "rows=3"]}
    near |= {"given": ["share=0", "share=1"], "slower": 1.05}
    payload = {"payload_bytes": "rows * row_bytes"}
    described = describe(
        claim(**mean, at_least=7.9),
        claim(**near, at_least=0.6) | {"id": "most"},
        claim(**near, at_least=0.7) | {"id": "more"},
    )
    described["cases"] |= {
        "chosen": {"rows": [1, 3], **payload},
        "given": {"rows": [1, 2, 3], "share": [0, 1], **payload},
    }
    described["variants"][1]["cases"] = ["only", "other", "chosen", "given"]
    study, results = described_study(tmp_path, described), tmp_path / "results"
    measure(results, study, {})
    # The choice is the best one, 4 % slower, and 10 % slower.
    best = {f"rows={rows},share={share}": 2e-3 for rows in (1, 2, 3) for share in (0, 1)}
    fast = {CASE: 2e-3, "rows=1": 2e-3, "rows=2": 2.08e-3, "rows=3": 2.2e-3, **best}
    slow = {CASE: 8e-3, "rows=2": 16 * 2.08e-3}
    seconds = {"slow": slow, "fast": fast}
    for name in seconds:
        samples = samples_of(
            study,
            study.variant(name),
            seconds=lambda variant, case, _: seconds[variant.name][case.id],
            noise=1e-4,
            rounds=8,
            run=NEW,
        )
        add_samples(results, study, name, samples, NEW)
    rows = claims_of(results, study)
    assert [row["verdict"] for row in rows] == ["holds", "holds", "does not hold"]
    assert [row["measured"] for row in rows[:2]] == pytest.approx([8, 2 / 3], rel=1e-3)


def test_units_of_the_published_rows(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(**UNITS))
    results = tmp_path / "results"
    assert [row["verdict"] for row in claims_of(results, study)] == ["not tested"]
    publish(results)
    (row,) = claims_of(results, study)
    assert (row["machine"], row["verdict"]) == ("published", "holds")
    assert row["measured"] == pytest.approx(2**30 / 1e9, rel=1e-3)
    assert row["reason"].endswith("in 2 if read in GiB/s and in 0 if read in GB/s, of 2 rows")
    coarse = PUBLISHED.replace("8.0000", "16.000").replace("7.45", "4")  # 4.00 GB/s, 3.73 GiB/s
    wrong = [PUBLISHED.replace("7.45,GB", f"{rate},GB") for rate in ("8.00", "9.00", "7.46")]
    for text in (*wrong, "\n".join(coarse.splitlines()[:3]) + "\n"):
        publish(results, text)
        (row,) = claims_of(results, study)
        assert row["verdict"] == "does not hold"


def test_a_printed_share_and_speedup_are_of_the_printed_time_and_one_source(tmp_path: Path) -> None:
    other = {"id": "other", "says": "So.", "test": SOURCE | {"source": "Other", "at_least": 3}}
    speedup = {"id": "speedup", "says": "So.", "test": SOURCE | {"at_least": 3}}
    study = write_study(tmp_path, claim(**PRINTED, within=0.01), speedup, other)
    results = tmp_path / "results"
    elsewhere = "slow,rows=1000000,gpu_time,5.0,ms,ms,Other,mean\n"
    publish(results, PUBLISHED.replace("8.0000", "5.0000") + elsewhere)
    share, ratio, none = claims_of(results, study)
    assert (share["machine"], share["verdict"]) == ("published", "does not hold")
    assert share["published"] == pytest.approx(29.80 / 64)
    assert (ratio["verdict"], ratio["measured"]) == ("does not hold", pytest.approx(2.5))
    assert none["reason"] == "missing: Other printed no rate of fast in this case"
    publish(results, PUBLISHED.replace("29.80", "32.00"))
    assert claims_of(results, study)[0]["verdict"] == "holds"
