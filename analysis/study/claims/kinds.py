"""Kinds of comparison of measured results, a class each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, Strict

from analysis.base.keys import Name, Text, Unique, key
from analysis.base.quantities import percent, percent_interval, quantity, quantity_interval
from analysis.base.statistics import DIFFERENCE, SHARE
from analysis.study.claims.comparison import CASE, OF, OVER, Bounded, Comparison, OfShares
from analysis.study.claims.evidence import Evidence
from analysis.study.claims.verdicts import FAILS, HOLDS, Figure, Missing, Outcome

if TYPE_CHECKING:
    import pandas as pd

METRIC: Final = (
    "The metric to compare. If optional, the default is the first time of a whole operation that"
    " the variants have, but not gpu_time if the CPU works in one of them."
)


@dataclass(frozen=True, kw_only=True)
class _Paired(Bounded):
    """Times of `of` and `over`, visit by visit in every run that has both.

    Left out, `metric` is the preferred one that compares the two.
    """

    of: Name = key(OF, names="variant")
    over: Name = key(OVER, names="variant")
    metric: Name = key(METRIC, "", names="metric")
    case: Text = key(CASE, "")

    def _paired(self, evidence: Evidence, *, by_rate: bool) -> Figure:
        of, over = evidence.times(self.variants, self.case, self.metric)
        pairs: pd.Series = (over / of).dropna()
        if pairs.empty:
            raise Missing(f"{self.of} and {self.over} have not been measured in one run")
        scale = 1.0
        if by_rate:
            payloads = [evidence.payload(name, self.case) for name in self.variants]
            scale = payloads[0] / payloads[1]
        of_printed, over_printed = (
            evidence.published_seconds(name, self.case) for name in self.variants
        )
        figure = evidence.over_rounds(pairs * scale, evidence.kind_of_ratios(self.metric))
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
            raise Missing(f"{self.of} and {self.over} have not been measured in one run")
        return evidence.over_rounds(added, DIFFERENCE)

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
            raise Missing(f"{self.of} and {self.over} have not been measured in one run")
        return evidence.over_rounds(means, evidence.kind_of_ratios(self.metric))


@dataclass(frozen=True, kw_only=True)
class Share(_Paired, OfShares, kind="share"):
    """Payload rate of a variant as a share of another variant's."""

    def figure(self, evidence: Evidence) -> Figure:
        return self._paired(evidence, by_rate=True)


@dataclass(frozen=True, kw_only=True)
class BetweenCases(Bounded, kind="between_cases"):
    """Payload rate of a variant in one case as a multiple of that in another, `over_case`."""

    of: Name = key(OF, names="variant")
    metric: Name = key(METRIC, "", names="metric")
    case: Text = key(CASE, "")
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
            raise Missing(f"{self.of} has not been measured in both cases in one run")
        payloads = [evidence.payload(self.of, case) for case in (self.case, self.over_case)]
        return evidence.over_rounds(
            pairs * payloads[0] / payloads[1], evidence.kind_of_ratios(self.metric)
        )


@dataclass(frozen=True, kw_only=True)
class NearBest(OfShares, kind="near_best"):
    """Share of the cases in which a variant that chooses the value of a key is nearly as fast as
    with the best of some given values."""

    of: Name = key(OF, names="variant")
    metric: Name = key(METRIC, "", names="metric")
    case: Text = key(CASE, "")
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
            raise Missing(f"{self.of} has not been measured in all cases in one run")
        return evidence.over_rounds(share, SHARE)

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
class ModelShare(OfShares, kind="model_share"):
    """The share of the predicted rate that is reached: predicted over measured time."""

    of: Name = key(OF, names="variant")
    metric: Name = key(METRIC, "", names="metric")
    case: Text = key(CASE, "")

    def figure(self, evidence: Evidence) -> Figure:
        (seconds,) = evidence.times([self.of], self.case, self.metric)
        predicted = evidence.predicted_seconds(self.of, self.case, self.metric)
        return evidence.over_rounds(predicted / seconds)


@dataclass(frozen=True, kw_only=True)
class Measured(Bounded, kind="figure"):
    """A metric of a variant, in its unit; `is_share` if it is a share of 1."""

    of: Name = key(OF, names="variant")
    metric: Name = key(METRIC, names="metric")
    case: Text = key(CASE, "")
    is_share: bool = False

    def figure_unit(self, units: Mapping[str, str]) -> str:
        return units[self.metric]

    def figure(self, evidence: Evidence) -> Figure:
        figure = self._over_all(evidence, evidence.visits(self.of, self.case, self.metric))
        published = evidence.published_seconds(self.of, self.case, self.metric)
        return replace(figure, published=published)

    def _over_all(self, evidence: Evidence, by_visit: pd.Series) -> Figure:
        return evidence.over_rounds(by_visit, evidence.kind(self.metric))

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
        return evidence.over_hosts(by_visit, evidence.kind(self.metric))


@dataclass(frozen=True, kw_only=True)
class Correct(Comparison, kind="correct"):
    """A check of correctness: the variant must pass in every round of the runs in use.

    A wrong output leaves a failed row without a value, so no figure shows it.
    """

    of: Name = key(OF, names="variant")
    case: Text = key(CASE, "")

    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        check = evidence.check(self.of, self.case)
        if check.fault:
            return Outcome(FAILS, f"failed its check: {check.fault}", runs=check.runs)
        return Outcome(HOLDS, f"passed its check in {check.rounds} rounds", runs=check.runs)
