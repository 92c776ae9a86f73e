"""build/claims.csv: what the results say of every claim, a write-up's or ours, by machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis.claims import Claim, Comparison, unit_of
from analysis.statistics import median_intervals
from analysis.store.collect import chosen, visits
from analysis.store.published import SI, best_statement, load_published
from analysis.store.results import PUBLISHED
from analysis.study import Study

CLAIM_COLUMNS = [
    *("study", "claim", "machine", "verdict", "reason"),
    *("published", "measured", "ci_low", "ci_high", "unit", "case"),
]
HOLDS: Final = "holds"
FAILS: Final = "does not hold"
NOT_TESTED: Final = "not tested"


class NotTested(Exception):
    """Why a comparison cannot be made; never leaves this module."""


@dataclass(frozen=True)
class Figure:
    """A figure and its interval in SI base units; `published` is the write-up's, NaN if none."""

    value: float
    low: float
    high: float
    published: float = math.nan


@dataclass(frozen=True)
class Outcome:
    verdict: str
    reason: str
    figure: Figure | None = None


@dataclass(frozen=True)
class Evidence:
    """What is known of one study on one machine.

    `samples` are its rows of the collected samples; `published` and `model` the study's rows of
    those tables, the latter on this machine.
    """

    study: Study
    samples: pd.DataFrame
    published: pd.DataFrame
    model: pd.DataFrame

    @cached_property
    def by_visit(self) -> pd.Series:
        """Median of the fresh, checked samples by variant, case, metric, run, round and visit."""
        is_fresh = (self.samples["status"] == "ok") & ~self.samples["stale"].astype(bool)
        good = self.samples[is_fresh & (self.samples["verified"] == 1)]
        good = good.assign(visit=visits(good, {self.study.name: self.study}))
        keys = ["variant", "case", "metric", "run", "round", "visit"]
        medians: pd.Series = good.groupby(keys)["value"].median()
        return medians

    @cached_property
    def newest(self) -> pd.DataFrame:
        """The samples a summary uses."""
        return chosen(self.samples)

    def own(self, variant: str, case: str) -> pd.DataFrame:
        """Of `newest` the rows of this variant and case."""
        return self.newest[(self.newest["variant"] == variant) & (self.newest["case"] == case)]

    def visits(self, variant: str, case: str, metric: str) -> pd.Series:
        """The metric by run, round and visit, in its unit; NotTested says why there is none."""
        try:
            found: pd.Series = self.by_visit.loc[variant, case, metric]
        except KeyError:
            raise NotTested(self.absence(variant, case, metric)) from None
        return found

    def absence(self, variant: str, case: str, metric: str) -> str:
        """Why there are no fresh, checked samples of this metric."""
        own = self.own(variant, case)
        if own.empty:
            return f"{variant} has not been measured in this case"
        first = own.iloc[0]
        if first["status"] == "skipped":
            return f"{variant} was skipped: {first['reason']}"
        if own["stale"].all():
            return f"the result of {variant} is stale"
        if first["status"] == "failed":
            return f"{variant} {_failure(own)}"
        if not own["verified"].all():
            return f"the output of {variant} was not checked"
        return f"{variant} has no {metric}"

    def times(self, test: Comparison) -> list[pd.Series]:
        """Seconds of the test's variants by run, round and visit, by the first metric all have."""
        variants = [self.study.variant(name) for name in test.variants]
        metrics = [test.metric] if test.metric else self.study.metrics_for(*variants)
        reasons = []
        for metric in metrics:
            try:
                return [self.visits(variant.name, test.case, metric) for variant in variants]
            except NotTested as reason:
                reasons.append(reason)
        raise reasons[0] if reasons else NotTested("no metric compares the two")

    def payload(self, variant: str, case: str) -> int:
        """Bytes that one operation of the variant delivers in this case; NotTested if none."""
        cases = {one.id: one.payload_bytes for one in self.study.variant(variant).cases}
        if not cases[case]:
            raise NotTested(f"{variant} delivers no bytes")
        return cases[case]

    def printed(self, variant: str, case: str) -> pd.Series | None:
        """The best published row of this variant and case; of several sources, the first one's."""
        rows = best_statement(self.published)
        rows = rows[(rows["variant"] == variant) & (rows["case"] == case)]
        return None if rows.empty else rows.iloc[0]

    def printed_seconds(self, variant: str, case: str) -> float:
        row = self.printed(variant, case)
        return math.nan if row is None else float(row["seconds"])


def claims_table(
    samples: pd.DataFrame, studies: Mapping[str, Study], results: Path, model: pd.DataFrame
) -> pd.DataFrame:
    """One row a claim and machine that has anything of its study, in CLAIM_COLUMNS.

    `samples` are as `collect` gives them, `model` is the link model's table of predictions. A claim
    that the rows under `results`/published decide alone has one row, its machine `published`.
    """
    rows = []
    for study in studies.values():
        if not study.claims:
            continue
        published = load_published(results, study)
        own = samples[samples["study"] == study.name]
        predicted = model[model["study"] == study.name]
        on_rows = Evidence(study, own.iloc[:0], published, predicted.iloc[:0])
        rows += [_row(on_rows, claim, PUBLISHED) for claim in study.claims if claim.on_rows]
        for machine, here in own.groupby("machine", sort=True):
            on_machine = predicted[predicted["machine"] == machine]
            evidence = Evidence(study, here, published, on_machine)
            rows += [_row(evidence, c, str(machine)) for c in study.claims if not c.on_rows]
    return pd.DataFrame(rows, columns=CLAIM_COLUMNS)


def _row(evidence: Evidence, claim: Claim, machine: str) -> dict[str, object]:
    outcomes = [_outcome(evidence, test, claim.published) for test in claim.tests]
    row: dict[str, object] = {
        "study": evidence.study.name,
        "claim": claim.id,
        "machine": machine,
        "published": claim.published,
    }
    if not outcomes:
        return row | {"verdict": NOT_TESTED, "reason": claim.untested}
    units = {name: metric.unit for name, metric in evidence.study.metrics.items()}
    if len(outcomes) > 1:
        # No one figure speaks for several comparisons: each is told in the reason.
        parts = sorted(zip(claim.tests, outcomes, strict=True), key=lambda part: _decides(*part))
        in_cases = len({test.case for test in claim.tests}) > 1
        row["reason"] = "; ".join(_part(*part, in_cases) for part in parts)
        return row | {"verdict": together([outcome.verdict for outcome in outcomes])}
    (test,), (outcome,) = claim.tests, outcomes
    row |= {"verdict": outcome.verdict, "reason": outcome.reason}
    row |= {"unit": unit_of(test, units), "case": test.case}
    if outcome.figure is not None:
        figure = outcome.figure
        row |= {"published": figure.published, "measured": figure.value}
        row |= {"ci_low": figure.low, "ci_high": figure.high}
    return row


def together(verdicts: list[str]) -> str:
    """The verdict on a claim from those on its parts: one that does not hold decides."""
    if FAILS in verdicts:
        return FAILS
    return NOT_TESTED if NOT_TESTED in verdicts else HOLDS


def _decides(test: Comparison, outcome: Outcome) -> tuple[int, float]:
    """Sorts the parts of a claim: those that do not hold first, then by their room to the bound,
    as a share of it."""
    order = (FAILS, NOT_TESTED, HOLDS).index(outcome.verdict)
    figure = outcome.figure
    if figure is None or test.bound not in ("at_least", "at_most"):
        return order, 0.0
    room = figure.low - test.value if test.bound == "at_least" else test.value - figure.high
    return order, room / (abs(test.value) or 1)


def _part(test: Comparison, outcome: Outcome, in_case: bool) -> str:
    """`fast over slow by rate in n=1: 1.002 (1 to 1.004), not at least 1.05`."""
    words = [" over ".join(test.variants) or test.kind, test.metric]
    words.append("by rate" if test.by == "rate" else "")
    words.append(f"in {test.case}" if in_case and test.case else "")
    said = f"{' '.join(filter(None, words))}: "
    if (figure := outcome.figure) is not None:
        said += f"{_text(figure.value)} ({_text(figure.low)} to {_text(figure.high)}), "
    return said + outcome.reason


def _outcome(evidence: Evidence, test: Comparison, published: float | None) -> Outcome:
    try:
        if test.kind in OUTCOMES:
            return OUTCOMES[test.kind](evidence, test)
        figure = FIGURES[test.kind](evidence, test)
    except NotTested as reason:
        return Outcome(NOT_TESTED, str(reason))
    if published is not None:
        figure = replace(figure, published=published)
    return judge(figure, test.bound, test.value)


def judge(figure: Figure, bound: str, value: float) -> Outcome:
    """Whether the interval of `figure` meets the bound; undecided is not tested.

    `within` asks that it overlaps what is so near, as a share, to the published figure.
    """
    low, high = figure.low, figure.high
    if math.isnan(low) or math.isnan(high):
        return Outcome(NOT_TESTED, "a single round gives no interval", figure)
    if bound == "within":
        if math.isnan(figure.published):
            return Outcome(NOT_TESTED, "there is no published figure to compare with", figure)
        ends = figure.published * (1 - value), figure.published * (1 + value)
        words = f"within {value * 100:g} % of the published: {_text(ends[0])} to {_text(ends[1])}"
        if low <= ends[1] and high >= ends[0]:
            return Outcome(HOLDS, words, figure)
        return Outcome(FAILS, f"not {words}", figure)
    words = f"{bound.replace('_', ' ')} {_text(value)}"
    if (low >= value) if bound == "at_least" else (high <= value):
        return Outcome(HOLDS, words, figure)
    if (high < value) if bound == "at_least" else (low > value):
        return Outcome(FAILS, f"not {words}", figure)
    reason = f"the interval {_text(low)} to {_text(high)} does not decide whether it is {words}"
    return Outcome(NOT_TESTED, reason, figure)


def _speedup(evidence: Evidence, test: Comparison) -> Figure:
    """Time of `over` over that of `of`, visit by visit in the newest run that has both."""
    of, over = evidence.times(test)
    pairs = (over / of).dropna()
    if pairs.empty:
        raise NotTested(f"{test.of} and {test.over} have not been measured in one run")
    scale = 1.0
    if test.by == "rate":
        scale = evidence.payload(test.of, test.case) / evidence.payload(test.over, test.case)
    printed = [evidence.printed_seconds(name, test.case) for name in (test.over, test.of)]
    return replace(
        _figure(_of_newest_run(pairs) * scale), published=scale * printed[0] / printed[1]
    )


def _share(evidence: Evidence, test: Comparison) -> Figure:
    return _speedup(evidence, replace(test, by="rate"))


def _model_share(evidence: Evidence, test: Comparison) -> Figure:
    """Predicted over measured time: the share of the predicted rate that is reached."""
    (of,) = evidence.times(test)
    metrics = [test.metric] if test.metric else evidence.study.metrics_for()
    rows = evidence.model[
        (evidence.model["variant"] == test.of)
        & (evidence.model["case"] == test.case)
        & evidence.model["metric"].isin(metrics[:1])
    ].dropna(subset="predicted")
    if rows.empty:
        raise NotTested("no model prediction")
    return _figure(float(rows.iloc[0]["predicted"]) / _of_newest_run(of))


def _metric(evidence: Evidence, test: Comparison) -> Figure:
    values = evidence.visits(test.of, test.case, test.metric)
    row = evidence.printed(test.of, test.case)
    is_printed = row is not None and row["metric"] == test.metric
    printed = evidence.printed_seconds(test.of, test.case) if is_printed else math.nan
    return replace(_figure(_of_newest_run(values)), published=printed)


def _printed_share(evidence: Evidence, test: Comparison) -> Figure:
    """The printed rate over the limit: taken at its word, and as payload over printed time."""
    own = evidence.published[
        (evidence.published["variant"] == test.of) & (evidence.published["case"] == test.case)
    ]
    rates = own[own["unit_printed"] == test.unit]
    times = _times(own)
    if rates.empty or times.empty:
        raise NotTested(f"{test.of} has no published time and rate in {test.unit}")
    value = float(times.iloc[0]["rate"]) * 1e9 / (test.limit * SI[test.unit][1])
    return Figure(value, value, value, float(rates.iloc[0]["printed"]) / test.limit)


FIGURES: Final[Mapping[str, Callable[[Evidence, Comparison], Figure]]] = {
    "speedup": _speedup,
    "share": _share,
    "model_share": _model_share,
    "figure": _metric,
    "printed_share": _printed_share,
}
"""What each kind of comparison with a bound makes of the evidence. Raises NotTested."""


def _units(evidence: Evidence, test: Comparison) -> Outcome:
    """Whether every rate printed in `printed` is that of the printed time only if `meant`."""
    key = ["variant", "case"]
    times = _times(evidence.published)
    rates = evidence.published[evidence.published["unit_printed"] == test.printed]
    both = times.merge(rates, on=key, suffixes=("_time", "_rate"))
    if both.empty:
        raise NotTested(f"no published row has both a time and a rate in {test.printed}")
    agrees = {
        unit: sum(_agrees(row, SI[unit][1]) for row in both.to_dict("records"))
        for unit in (test.meant, test.printed)
    }
    rate = both["rate_time"] * 1e9
    factors = rate / (both["printed_rate"].astype(float) * SI[test.printed][1])
    figure = Figure(float(factors.median()), float(factors.min()), float(factors.max()))
    holds = agrees[test.meant] == len(both) and agrees[test.printed] == 0
    counted = " and ".join(f"in {count} if read in {unit}" for unit, count in agrees.items())
    reason = f"payload over printed time is the printed rate {counted}, of {len(both)} rows"
    return Outcome(HOLDS if holds else FAILS, reason, figure)


def _correct(evidence: Evidence, test: Comparison) -> Outcome:
    """Whether the variant passed its check in every round of the run a summary uses.

    A wrong output leaves a failed row without a value, so no figure could tell of it.
    """
    own = evidence.own(test.of, test.case)
    own = own[~own["stale"].astype(bool)]
    if (own["status"] == "failed").any():
        return Outcome(FAILS, _failure(own))
    checked = own[own["status"] == "ok"]
    if checked.empty or not checked["verified"].all():
        raise NotTested(evidence.absence(test.of, test.case, "check"))
    return Outcome(HOLDS, f"passed its check in {checked['round'].nunique()} rounds")


def _failure(own: pd.DataFrame) -> str:
    """What the check found, without the semicolons that part the reasons of a claim."""
    reason = str(own.loc[own["status"] == "failed", "reason"].iloc[0])
    return f"failed its check: {reason.replace(';', ',')}"


OUTCOMES: Final[Mapping[str, Callable[[Evidence, Comparison], Outcome]]] = {
    "units": _units,
    "correct": _correct,
}
"""What each kind of comparison without a bound comes to. Raises NotTested."""


def _agrees(row: Mapping[Any, Any], unit: float) -> bool:
    """Whether time and rate, each rounded as printed, can be of one operation.

    `unit` is in B/s; both printed numbers may be off by half of their last digit.
    """
    rate, time = float(row["printed_rate"]), float(row["printed_time"])
    slack = _half_digit(row["printed_rate"]) / rate + _half_digit(row["printed_time"]) / time
    return math.isclose(float(row["rate_time"]) * 1e9, rate * unit, rel_tol=slack * 1.01)


def _half_digit(printed: str) -> float:
    decimals = printed.partition(".")[2]
    return 0.5 * 10.0 ** -len(decimals)


def _times(published: pd.DataFrame) -> pd.DataFrame:
    """The rows that print a time."""
    is_time = [SI[unit][0] == "s" for unit in published["unit_meant"]]
    return published.loc[is_time]


def _of_newest_run(values: pd.Series) -> pd.Series:
    runs = values.index.get_level_values("run")
    newest: pd.Series = values[runs == runs.max()]
    return newest


def _figure(by_visit: pd.Series) -> Figure:
    """Median over rounds, each the median of its visits, and its interval."""
    rounds = by_visit.groupby(["run", "round"]).median()
    median, low, high = median_intervals(np.array([rounds.to_numpy(dtype=float)]))
    return Figure(float(median[0]), float(low[0]), float(high[0]))


def _text(value: float) -> str:
    return f"{value:.4g}"
