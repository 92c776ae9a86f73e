"""Verdicts of every kind of comparison, and the decision by an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.base.statistics import TIME, Kind
from analysis.study import load_study
from analysis.study.claims.claim import Comparison
from analysis.study.claims.kinds import KINDS, Check, Statement
from analysis.study.claims.verdicts import Figure, outcome_of, room, together
from tests.repository import STUDIES
from tests.study.claims.studies import CASE, FEW_SMS, SECONDS, UNITS, claim, describe
from tests.synthetic import write_description

OTHER = "rows=2"
TIMES = {"slow": 8.0, "fast": 2.0, "wide": 2.0, "chooser": 2.0}
"""Seconds in CASE; a tenth of those in another case, unless one of CHOSEN."""
CHOSEN = {"rows=1": 2.0, OTHER: 2.08, "rows=3": 2.2}
"""Seconds of `chooser` in cases where the best choice takes 2."""
COUNTS = {("fast", "a__b.sum"): 200.0, ("fast", "a__c.sum"): 800.0, ("slow", "a__b.sum"): 100.0}
PRINTED = [
    Statement("slow", CASE, "8.0000", "ms", "ms", "Notes", 8e9),
    Statement("slow", CASE, "7.45", "GB/s", "GiB/s", "Notes", 8e9),
    Statement("fast", CASE, "2.0000", "ms", "ms", "Notes", 32e9),
    Statement("fast", CASE, "29.80", "GB/s", "GiB/s", "Notes", 32e9),
    Statement("slow", CASE, "5.0000", "ms", "ms", "Other", 12.8e9),
]


class Made:
    """Made-up evidence: two runs of two rounds, in which nothing varies."""

    def __init__(self, statements: Sequence[Statement] = PRINTED) -> None:
        self.statements = statements

    def visits(self, variant: str, case: str, metric: str) -> pd.Series:
        seconds = TIMES[variant] if case == CASE else TIMES[variant] / 10
        if variant == "chooser":
            seconds = CHOSEN.get(case, 2.0)
        index = pd.MultiIndex.from_product([["a", "b"], [0, 1], [0]], names=["run", "round", ""])
        return pd.Series(seconds, index)

    def times(self, variants: Sequence[str], case: str, metric: str) -> Sequence[pd.Series]:
        return [self.visits(variant, case, metric) for variant in variants]

    def kind(self, metric: str) -> Kind:
        return TIME

    def over_rounds(self, by_visit: pd.Series, kind: Kind = TIME) -> Figure:
        value = float(by_visit.median())
        return Figure(value, 0.99 * value, 1.01 * value)

    over_hosts = over_rounds

    def payload(self, variant: str, case: str) -> int:
        return (2 if variant == "wide" else 1) * (100 if case == CASE else 1)

    def published_seconds(self, variant: str, case: str, metric: str = "") -> float:
        return TIMES[variant]

    def predicted_seconds(self, variant: str, case: str, metric: str) -> float:
        return 1.5

    def count(self, variant: str, case: str, counter: str) -> float:
        return COUNTS[variant, counter]

    def check(self, variant: str, case: str) -> Check:
        return Check(frozenset(), 4, "byte 3" if variant == "wide" else "")


def compared(kind: str, of: str, over: str = "", **keys: Any) -> dict[str, Any]:
    return {"kind": kind, "of": of, "case": CASE, **({"over": over} if over else {}), **keys}


NEAR = {
    "given": ["share=0", "share=1"],
    "slower": 1.05,
    "case": "rows=1",
    "also": [OTHER, "rows=3"],
}
SHARE = compared("printed_share", "fast", limit=64.0, unit="GB/s")
PRINTED_SPEEDUP = compared("printed_speedup", "fast", "slow", source="Notes")
COMPARED: tuple[tuple[dict[str, Any], float], ...] = (
    (compared("speedup", "fast", "slow"), 4.0),
    (compared("speedup", "wide", "fast"), 1.0),
    (compared("speedup", "wide", "fast", by="rate"), 2.0),
    (compared("share", "slow", "fast"), 0.25),
    (compared("share", "wide", "fast"), 2.0),
    (compared("between_cases", "slow", over_case=OTHER), 10.0),
    (compared("figure", "fast", metric="gpu_time"), 2.0),
    (compared("mean_figure", "fast", metric="gpu_time"), 2.0),
    (compared("added_time", "slow", "fast"), 6.0),
    (compared("model_share", "fast"), 0.75),
    (compared("counts_per", "fast", counter="a__c.sum", per="a__b.sum"), 4),
    (compared("counts_over", "fast", "slow", counter="a__b.sum"), 2),
    (compared("mean_speedup", "chooser", "slow", also=[OTHER]), math.sqrt(8 / 2 * 0.8 / 2.08)),
    (compared("near_best", "chooser") | NEAR, 2 / 3),
    (SHARE, 0.5),
    (PRINTED_SPEEDUP, 4.0),
)
"""Comparisons, and the figure of each by the evidence above."""


kind = Comparison.model_validate


def test_each_comparison_both_ways() -> None:
    for test, figure in COMPARED:
        for bound, factor, verdict in (
            ("at_least", 0.97, "holds"),
            ("at_least", 1.03, "does not hold"),
            ("at_most", 1.03, "holds"),
            ("at_most", 0.97, "does not hold"),
        ):
            outcome = kind({**test, bound: figure * factor}).judge(Made())
            assert outcome.figure and outcome.figure.value == pytest.approx(figure), test
            assert outcome.verdict == verdict, test
    verdicts = [kind(compared("correct", name)).judge(Made()).verdict for name in ("fast", "wide")]
    assert verdicts == ["holds", "does not hold"]
    tests = [test for study in STUDIES.values() for one in study.claims for test in one.tests]
    assert {test.kind for test in tests} == set(KINDS), "every kind is in use"


def test_units_of_the_published_rows() -> None:
    outcome = kind(UNITS).judge(Made(PRINTED[:4]))
    assert outcome.verdict == "holds"
    assert outcome.reason.endswith("in 2 if read in GiB/s and in 0 if read in GB/s, of 2 rows")
    for rate in ("8.00", "9.00", "7.46"):
        printed = [PRINTED[0], PRINTED[1]._replace(printed=rate), *PRINTED[2:4]]
        assert kind(UNITS).judge(Made(printed)).verdict == "does not hold"
    assert kind(UNITS).judge(Made([])).verdict == "not tested"


def test_a_printed_share_and_speedup_are_of_the_printed_time_and_one_source() -> None:
    share = kind(SHARE | {"within": 0.01}).judge(Made()).figure
    assert share and share.published == pytest.approx(29.80 / 64)
    test = PRINTED_SPEEDUP | {"at_least": 3}
    assert kind(test).judge(Made(PRINTED[::-1])).verdict == "holds"
    reason = kind(test | {"source": "Other"}).judge(Made()).reason
    assert reason == "missing: Other printed no rate of fast in this case"


ENDS = {
    "holds": [
        *((1.0, 1.2, "at_least", 1.0), (0.9, 1.0, "at_most", 1.0), (9.1, 10.9, "within", 0.1)),
        *((3 - 1e-12, 3 + 1e-12, bound, 3.0) for bound in ("at_least", "at_most")),  # rounding
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
    ],
)
def test_open_prediction_may_hold_on_average(
    bound: tuple[str, float], mean: tuple[float, float], on_average: str, reason: str
) -> None:
    outcome = outcome_of(Figure(1.05, 0.8, 1.3, published=1.0, mean=mean), *bound)
    assert (outcome.verdict, outcome.on_average) == ("not tested", on_average)
    assert reason in outcome.reason


def test_figures_are_written_in_the_form_of_their_kind(tmp_path: Path) -> None:
    added = claim("added", kind="added_time", of="slow", over="fast", at_least=1)
    described = describe(claim(**FEW_SMS, at_most=1), added)
    described["metrics"]["sms_used"]["share"] = True
    path = write_description(tmp_path, described)
    for name in SECONDS:
        path.with_name(f"{name}.py").touch()
    share, time = load_study(path).claims
    assert share.write(0.042) == "4.2 %"
    assert share.tests[0].write_interval(0.042, 0.03, 0.05) == "3.0 % to 5.0 %"
    assert (time.write(6e-3), time.tests[0].figure_unit) == ("6.000 ms", "s")
