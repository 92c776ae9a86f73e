"""Kinds of comparison, a class each."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from pydantic import Field, Strict

from analysis.base.keys import Name, Positive, Sentence, Text, Unique, key, only
from analysis.base.quantities import (
    digits,
    percent,
    percent_interval,
    quantity,
    quantity_interval,
)
from analysis.base.units import DATA_RATES, SI
from analysis.study.claims.comparison import Bounded, Comparison
from analysis.study.claims.evidence import Evidence, Statement
from analysis.study.claims.verdicts import FAILS, HOLDS, NOT_TESTED, Figure, NotTested, Outcome

if TYPE_CHECKING:
    import pandas as pd

_OF: Final = "The variant of the claim."
_OVER: Final = "The baseline."
_METRIC: Final = (
    "The metric to compare. If optional, the default is the first time of a whole operation that"
    " the variants have, but not gpu_time if the CPU works in one of them."
)
_COUNTER: Final = "A counter of Nsight Compute, summed over a kernel."
_CASE: Final = "key=value pairs joined by commas, as in results; the headline case if omitted."

_DataRate = Annotated[
    Text,
    only(DATA_RATES.__contains__, f"one of {list(DATA_RATES)}"),
    Field(json_schema_extra={"enum": list(DATA_RATES)}),
]
_Counter = Annotated[Text, Field(pattern=r"^[a-z]+__[a-z0-9_]+\.sum$")]


@dataclass(frozen=True, kw_only=True)
class _OfShares(Bounded):
    """Its figures are shares of 1."""

    def write(self, value: float, unit: str) -> str:
        return percent(value)

    def write_interval(self, value: float, low: float, high: float, unit: str) -> str:
        return percent_interval(value, low, high)


@dataclass(frozen=True, kw_only=True)
class _Paired(Bounded):
    """Times of `of` and `over`, visit by visit in every run that has both.

    Left out, `metric` is the preferred one that compares the two.
    """

    of: Name = key(_OF, names="variant")
    over: Name = key(_OVER, names="variant")
    metric: Name = key(_METRIC, "", names="metric")
    case: Text = key(_CASE, "")

    def _paired(self, evidence: Evidence, *, by_rate: bool) -> Figure:
        of, over = evidence.times(self.variants, self.case, self.metric)
        pairs: pd.Series = (over / of).dropna()
        if pairs.empty:
            raise NotTested(f"{self.of} and {self.over} have not been measured in one run")
        scale = 1.0
        if by_rate:
            payloads = [evidence.payload(name, self.case) for name in self.variants]
            scale = payloads[0] / payloads[1]
        of_printed, over_printed = (
            evidence.published_seconds(name, self.case) for name in self.variants
        )
        figure = evidence.over_rounds(pairs * scale)
        return replace(figure, published=scale * over_printed / of_printed)


@dataclass(frozen=True, kw_only=True)
class Speedup(_Paired, kind="speedup"):
    """Speedup of one variant over another; by rate if rows differ in size."""

    by: Literal["time", "rate"] = key(
        "Compare times (default), or payload rates if the variants' rows differ in size.",
        "time",
    )

    @property
    def title(self) -> str:
        return f"{super().title} by rate" if self.by == "rate" else super().title

    def figure(self, evidence: Evidence) -> Figure:
        return self._paired(evidence, by_rate=self.by == "rate")


@dataclass(frozen=True, kw_only=True)
class AddedTime(_Paired, kind="added_time"):
    """Time of one variant minus that of another: what a wait of fixed length adds."""

    def figure_unit(self, units: Mapping[str, str]) -> str:
        return "s"

    def figure(self, evidence: Evidence) -> Figure:
        of, over = evidence.times(self.variants, self.case, self.metric)
        added: pd.Series = (of - over).dropna()
        if added.empty:
            raise NotTested(f"{self.of} and {self.over} have not been measured in one run")
        return evidence.over_rounds(added)

    def write(self, value: float, unit: str) -> str:
        return quantity(value, unit)

    def write_interval(self, value: float, low: float, high: float, unit: str) -> str:
        return quantity_interval(value, low, high, unit)


@dataclass(frozen=True, kw_only=True)
class MeanSpeedup(_Paired, kind="mean_speedup"):
    """Speedup of one variant over another: geometric mean over several cases."""

    also: Annotated[Unique[Text], Field(min_length=1)] = key(
        "Further cases of the mean.", names="cases"
    )

    @property
    def title(self) -> str:
        return f"{super().title}, mean of {1 + len(self.also)} cases"

    def figure(self, evidence: Evidence) -> Figure:
        ratios = []
        for case in (self.case, *self.also):
            of, over = evidence.times(self.variants, case, self.metric)
            ratios.append((over / of).dropna().groupby(["run", "round"]).median())
        means = (math.prod(ratios, start=1.0) ** (1 / len(ratios))).dropna()
        if means.empty:
            raise NotTested(f"{self.of} and {self.over} have not been measured in one run")
        return evidence.over_rounds(means)


@dataclass(frozen=True, kw_only=True)
class Share(_Paired, _OfShares, kind="share"):
    """Payload rate of a variant as a share of another variant's."""

    def figure(self, evidence: Evidence) -> Figure:
        return self._paired(evidence, by_rate=True)


@dataclass(frozen=True, kw_only=True)
class BetweenCases(Bounded, kind="between_cases"):
    """Payload rate of a variant in one case as a multiple of that in another, `over_case`."""

    of: Name = key(_OF, names="variant")
    metric: Name = key(_METRIC, "", names="metric")
    case: Text = key(_CASE, "")
    over_case: Text = key("The case of the baseline.", names="case")

    @property
    def title(self) -> str:
        values = self.case.split(",")
        other = [value for value in self.over_case.split(",") if value not in values]
        return f"{self.of} over its rate at {','.join(other)}"

    def figure(self, evidence: Evidence) -> Figure:
        (of,), (over,) = (
            evidence.times([self.of], case, self.metric) for case in (self.case, self.over_case)
        )
        pairs: pd.Series = (over / of).dropna()
        if pairs.empty:
            raise NotTested(f"{self.of} has not been measured in both cases in one run")
        payloads = [evidence.payload(self.of, case) for case in (self.case, self.over_case)]
        return evidence.over_rounds(pairs * payloads[0] / payloads[1])


@dataclass(frozen=True, kw_only=True)
class NearBest(_OfShares, kind="near_best"):
    """Share of the cases in which a variant that chooses the value of a key is nearly as fast as
    with the best of some given values."""

    of: Name = key(_OF, names="variant")
    metric: Name = key(_METRIC, "", names="metric")
    case: Text = key(_CASE, "")
    also: Unique[Text] = key("Further cases in which it chooses.", (), names="cases")
    given: Annotated[Unique[Text], Field(min_length=1)] = key(
        "Values of the key, as `key=value`. Each of the cases exists with each of them, too."
    )
    slower: Annotated[float, Strict(), Field(gt=1)] = key(
        "Maximum ratio of its time to the time with the best value."
    )

    @property
    def cases(self) -> list[str]:
        chosen = super().cases
        return [*chosen, *(f"{case},{value}" for case in chosen for value in self.given)]

    @property
    def title(self) -> str:
        near = f"within {self.slower - 1:.0%} of the best"
        return f"{super().title} {near}, in {1 + len(self.also)} cases"

    def figure(self, evidence: Evidence) -> Figure:
        near = [self._is_near(evidence, case) for case in (self.case, *self.also)]
        share: pd.Series = (sum(near[1:], near[0]) / len(near)).dropna()
        if share.empty:
            raise NotTested(f"{self.of} has not been measured in all cases in one run")
        return evidence.over_rounds(share)

    def _is_near(self, evidence: Evidence, case: str) -> pd.Series:
        """1 by run and round where the choice is near the best, else 0."""
        chosen, *given = (
            evidence.times([self.of], each, self.metric)[0].groupby(["run", "round"]).median()
            for each in (case, *(f"{case},{value}" for value in self.given))
        )
        is_near = chosen.notna().astype(float)
        for one in given:
            is_near = is_near * ((chosen / one).dropna() <= self.slower)
        return is_near


@dataclass(frozen=True, kw_only=True)
class ModelShare(_OfShares, kind="model_share"):
    """The share of the predicted rate that is reached: predicted over measured time."""

    of: Name = key(_OF, names="variant")
    metric: Name = key(_METRIC, "", names="metric")
    case: Text = key(_CASE, "")

    def figure(self, evidence: Evidence) -> Figure:
        (seconds,) = evidence.times([self.of], self.case, self.metric)
        predicted = evidence.predicted_seconds(self.of, self.case, self.metric)
        return evidence.over_rounds(predicted / seconds)


@dataclass(frozen=True, kw_only=True)
class Measured(Bounded, kind="figure"):
    """A metric of a variant, in its unit; `is_share` if it is a share of 1."""

    of: Name = key(_OF, names="variant")
    metric: Name = key(_METRIC, names="metric")
    case: Text = key(_CASE, "")
    is_share: bool = False

    def figure_unit(self, units: Mapping[str, str]) -> str:
        return units[self.metric]

    def figure(self, evidence: Evidence) -> Figure:
        figure = self._over_all(evidence, evidence.visits(self.of, self.case, self.metric))
        published = evidence.published_seconds(self.of, self.case, self.metric)
        return replace(figure, published=published)

    def _over_all(self, evidence: Evidence, by_visit: pd.Series) -> Figure:
        return evidence.over_rounds(by_visit)

    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        outcome = super()._judge(evidence, published)
        figure = outcome.figure
        if figure is None or figure.groups == 1:
            return outcome
        apart = max(figure.by_run) / min(figure.by_run)
        reason = f"its runs fall into {figure.groups} groups, up to {apart:.3g} times apart"
        return Outcome(NOT_TESTED, f"{reason}, which no single figure describes", figure)

    def write(self, value: float, unit: str) -> str:
        return percent(value) if self.is_share else quantity(value, unit)

    def write_interval(self, value: float, low: float, high: float, unit: str) -> str:
        if self.is_share:
            return percent_interval(value, low, high)
        return quantity_interval(value, low, high, unit)


@dataclass(frozen=True, kw_only=True)
class MeanMeasured(Measured, kind="mean_figure"):
    """Mean of a metric of a variant over all possible hosts, in its unit. All other kinds predict
    the next run."""

    @property
    def title(self) -> str:
        return f"{super().title}, mean over hosts"

    def _over_all(self, evidence: Evidence, by_visit: pd.Series) -> Figure:
        return evidence.over_hosts(by_visit)


@dataclass(frozen=True, kw_only=True)
class _Counted(Bounded):
    """Its figures are ratios of hardware counters of one launch. They have no interval, because
    the same program with the same data counts the same."""

    on_counters: ClassVar[bool] = True

    of: Name = key(_OF, names="variant")
    counter: _Counter = key(_COUNTER)
    case: Text = key(_CASE, "")

    def _ratio(self, evidence: Evidence, over: str, counter: str) -> Figure:
        counted = evidence.count(self.of, self.case, self.counter)
        base = evidence.count(over, self.case, counter)
        if not base:
            raise NotTested(f"{over} counted no {counter}")
        return Figure(counted / base, counted / base, counted / base)


@dataclass(frozen=True, kw_only=True)
class CountsPer(_Counted, kind="counts_per"):
    """A hardware counter of a variant over another of its counters, `per`, by a profile."""

    per: _Counter = key("The counter in the denominator.")

    @property
    def title(self) -> str:
        return f"{self.of} {self.counter} per {self.per}"

    def figure(self, evidence: Evidence) -> Figure:
        return self._ratio(evidence, self.of, self.per)

    def write(self, value: float, unit: str) -> str:
        return digits(value)


@dataclass(frozen=True, kw_only=True)
class CountsOver(_Counted, kind="counts_over"):
    """A hardware counter of one variant as a multiple of the same counter of another, by their
    profiles."""

    over: Name = key(_OVER, names="variant")

    @property
    def title(self) -> str:
        return f"{super().title} {self.counter}"

    def figure(self, evidence: Evidence) -> Figure:
        return self._ratio(evidence, self.over, self.counter)


@dataclass(frozen=True, kw_only=True)
class Correct(Comparison, kind="correct"):
    """A check of correctness: the variant must pass in every round of the runs in use.

    A wrong output leaves a failed row without a value, so no figure shows it.
    """

    of: Name = key(_OF, names="variant")
    case: Text = key(_CASE, "")

    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        check = evidence.check(self.of, self.case)
        if check.fault:
            return Outcome(FAILS, f"failed its check: {check.fault}")
        return Outcome(HOLDS, f"passed its check in {check.rounds} rounds")


@dataclass(frozen=True, kw_only=True)
class Units(Comparison, kind="units"):
    """Whether the rates printed in `printed` agree with the printed times only in `meant`."""

    on_rows: ClassVar[bool] = True

    printed: _DataRate = key("The printed unit of the rates.")
    meant: _DataRate = key("The true unit of the rates.")

    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        pairs = [
            (time, rate)
            for time in _times(evidence.statements)
            for rate in evidence.statements
            if rate.unit_printed == self.printed
            and (rate.variant, rate.case) == (time.variant, time.case)
        ]
        if not pairs:
            raise NotTested(f"no published row has both a time and a rate in {self.printed}")
        agrees = {
            unit: sum(_agree(time, rate, SI[unit][1]) for time, rate in pairs)
            for unit in (self.meant, self.printed)
        }
        factors = [time.rate / (float(rate.printed) * SI[self.printed][1]) for time, rate in pairs]
        figure = Figure(statistics.median(factors), min(factors), max(factors))
        holds = agrees[self.meant] == len(pairs) and agrees[self.printed] == 0
        counted = " and ".join(f"in {count} if read in {unit}" for unit, count in agrees.items())
        reason = f"payload over printed time is the printed rate {counted}, of {len(pairs)} rows"
        return Outcome(HOLDS if holds else FAILS, reason, figure)


@dataclass(frozen=True, kw_only=True)
class PrintedShare(_OfShares, kind="printed_share"):
    """The printed rate over a limit, both as printed and as payload over printed time."""

    on_rows: ClassVar[bool] = True

    of: Name = key(_OF, names="variant")
    limit: Positive = key("The limit of the printed rate, in `unit`.")
    unit: _DataRate = key("The unit of `limit` and of the printed rate.")
    case: Text = key(_CASE, "")

    def figure(self, evidence: Evidence) -> Figure:
        printed = [s for s in evidence.statements if (s.variant, s.case) == (self.of, self.case)]
        rates = [statement for statement in printed if statement.unit_printed == self.unit]
        times = _times(printed)
        if not rates or not times:
            raise NotTested(f"{self.of} has no published time and rate in {self.unit}")
        reached = times[0].rate / (self.limit * SI[self.unit][1])
        return Figure(reached, reached, reached, float(rates[0].printed) / self.limit)


@dataclass(frozen=True, kw_only=True)
class PrintedSpeedup(Bounded, kind="printed_speedup"):
    """The printed rate of one variant over that of another, where `source` printed both."""

    on_rows: ClassVar[bool] = True

    of: Name = key(_OF, names="variant")
    over: Name = key(_OVER, names="variant")
    source: Sentence = key("The source, as in the published rows.")
    case: Text = key(_CASE, "")

    def figure(self, evidence: Evidence) -> Figure:
        of, over = (self._rate(evidence, name) for name in self.variants)
        return Figure(of / over, of / over, of / over)

    def _rate(self, evidence: Evidence, variant: str) -> float:
        rates = [
            statement.rate
            for statement in evidence.statements
            if (statement.variant, statement.case) == (variant, self.case)
            and statement.source == self.source
            and not math.isnan(statement.rate)
        ]
        if not rates:
            raise NotTested(f"{self.source} printed no rate of {variant} in this case")
        return rates[0]


def _times(statements: Sequence[Statement]) -> list[Statement]:
    """Statements of a time, of operations that deliver bytes."""
    return [s for s in statements if SI[s.unit_meant][0] == "s" and not math.isnan(s.rate)]


def _agree(time: Statement, rate: Statement, unit: float) -> bool:
    """Whether a time and a rate, rounded as printed, can belong to one operation.

    `unit` is in B/s; both printed numbers may be off by half of their last digit.
    """
    printed = float(rate.printed)
    slack = _half_digit(rate.printed) / printed + _half_digit(time.printed) / float(time.printed)
    return math.isclose(time.rate, printed * unit, rel_tol=slack * 1.01)


def _half_digit(printed: str) -> float:
    decimals = printed.partition(".")[2]
    return 0.5 * 10.0 ** -len(decimals)
