"""The kinds of comparison that may test a claim: a model each, with its keys in study.yaml, and a
function that computes its figure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import BaseModel, Field, model_validator

from analysis.base.keys import Fault, Positive, Sentence, Unique
from analysis.base.quantities import (
    SI,
    digits,
    percent,
    percent_interval,
    quantity,
    quantity_interval,
    ratio,
    ratio_interval,
)
from analysis.base.statistics import DIFFERENCE, SHARE
from analysis.study.claims import verdicts
from analysis.study.claims.evidence import Evidence, Statement
from analysis.study.claims.verdicts import (
    FAILS,
    HOLDS,
    NOT_TESTED,
    Figure,
    Missing,
    NotTested,
    Outcome,
)

if TYPE_CHECKING:
    import pandas as pd

BOUNDS: Final = ("at_least", "at_most", "within")

Of = Annotated[str, Field(description="The variant of the claim.")]
Over = Annotated[str, Field(description="The baseline.")]
Metric = Annotated[
    str,
    Field(
        description="The metric to compare. If optional, the default is the first time of a whole"
        " operation that the variants have, but not gpu_time if the CPU works in one of them."
    ),
]
Counter = Annotated[str, Field(pattern=r"^[a-z]+__[a-z0-9_]+\.sum$")]
Form = Literal["ratio", "share", "quantity", "digits"]
DataRate = Literal["B/s", "MB/s", "GB/s", "MiB/s", "GiB/s", "Gbps"]
KINDS: Final[dict[str, type[Comparison]]] = {}
"""Every kind of comparison, by its `kind` in study.yaml."""


class Comparison(BaseModel, extra="forbid", use_attribute_docstrings=True):
    """One test of a claim, in the case with the id `case`.

    `on_rows`: it uses only the published rows, so that it is judged once and not per machine.
    `on_counters`: it uses only the counters of a profiler, and no samples.
    """

    on_rows: ClassVar[bool] = False
    on_counters: ClassVar[bool] = False

    _form: Form = "ratio"

    case: str = ""
    """key=value pairs joined by commas, as in results; the headline case if omitted."""
    in_each: Unique[str] = ()
    """Such cases, in place of `case`: the entry of `all` stands for a comparison in each."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        if kind := cls.model_fields.get("kind"):
            KINDS[kind.default] = cls

    @property
    def variants(self) -> list[str]:
        """The compared variants."""
        return [name for key in ("of", "over") if (name := getattr(self, key, ""))]

    @property
    def metric_name(self) -> str:
        return str(getattr(self, "metric", ""))

    @property
    def cases(self) -> list[str]:
        """The ids of all its cases."""
        return [*filter(None, (self.case, getattr(self, "over_case", ""))), *self.further_cases]

    @property
    def further_cases(self) -> Sequence[str]:
        return getattr(self, "also", ())

    @property
    def title(self) -> str:
        """The compared variants and metric, in words."""
        return " ".join(filter(None, [" over ".join(self.variants), self.metric_name]))

    def figure_unit(self, units: Mapping[str, str]) -> str:
        """SI base unit of its figure; 1 for ratios, shares and counts. `units` are by metric."""
        return "1"

    def judge(self, evidence: Evidence, published: float | None = None) -> Outcome:
        """The outcome; `published` replaces the figure of the published rows."""
        try:
            return self._judge(evidence, published)
        except NotTested as reason:
            return Outcome(NOT_TESTED, str(reason), runs=reason.runs)

    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        """The outcome; raises NotTested with the reason."""
        raise NotImplementedError

    def room(self, figure: Figure) -> float:
        """Distance from the bound, as a share of it; negative if the figure violates it."""
        return 0.0

    def write(self, value: float, unit: str) -> str:
        """Its figure in `unit`, as text for pages."""
        if self._form == "quantity":
            return quantity(value, unit)
        return {"ratio": ratio, "share": percent, "digits": digits}[self._form](value)

    def write_interval(self, value: float, low: float, high: float, unit: str) -> str:
        """The interval of its figure `value`."""
        if self._form == "quantity":
            return quantity_interval(value, low, high, unit)
        if self._form == "share":
            return percent_interval(value, low, high)
        return ratio_interval(low, high)


class Bounded(Comparison):
    """A comparison whose figure must meet a bound: exactly one of its three keys."""

    at_least: Positive | None = None
    """The figure's whole interval must lie at or above this."""
    at_most: Positive | None = None
    """The figure's whole interval must lie at or below this."""
    within: Annotated[float, Field(gt=0, le=1)] | None = None
    """The figure's whole interval must lie within this margin around the published figure, a share
    of that."""

    @model_validator(mode="after")
    def _has_one_bound(self) -> Self:
        names = [name for name in BOUNDS if getattr(self, name) is not None]
        if len(names) != 1:
            raise Fault(f"exactly one of {list(BOUNDS)}", names)
        return self

    @property
    def bound(self) -> tuple[str, float]:
        """The key of the bound and its threshold."""
        return next((name, value) for name in BOUNDS if (value := getattr(self, name)))

    def figure(self, evidence: Evidence) -> Figure:
        """The figure to compare with the bound. Raises NotTested."""
        raise NotImplementedError

    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        figure = self.figure(evidence)
        if published is not None:
            figure = replace(figure, published=published)
        return verdicts.outcome_of(figure, *self.bound)

    def room(self, figure: Figure) -> float:
        return verdicts.room(figure, *self.bound)


class Paired(Bounded):
    """Times of `of` and `over`, visit by visit in every run that has both."""

    of: Of
    over: Over
    metric: Metric = ""

    def _times(self, evidence: Evidence, case: str) -> Sequence[pd.Series]:
        return evidence.times(self.variants, case, self.metric)

    def _known(self, values: pd.Series) -> pd.Series:
        """The visits that both have; raises Missing if there is none."""
        return _known(values, f"{self.of} and {self.over} have not been measured in one run")

    def _ratio(self, evidence: Evidence, *, by_rate: bool) -> Figure:
        of, over = self._times(evidence, self.case)
        pairs = self._known(over / of)
        scale = 1.0
        if by_rate:
            payloads = [evidence.payload(name, self.case) for name in self.variants]
            scale = payloads[0] / payloads[1]
        printed = [evidence.published_seconds(name, self.case) for name in self.variants]
        figure = evidence.over_rounds(pairs * scale, evidence.kind_of_ratios(self.metric))
        return replace(figure, published=scale * printed[1] / printed[0])


class Speedup(Paired):
    """Speedup of one variant over another; by rate if rows differ in size."""

    kind: Literal["speedup"] = "speedup"
    by: Literal["time", "rate"] = "time"
    """Compare times (default), or payload rates if the variants' rows differ in size."""

    @property
    def title(self) -> str:
        return f"{super().title} by rate" if self.by == "rate" else super().title

    def figure(self, evidence: Evidence) -> Figure:
        return self._ratio(evidence, by_rate=self.by == "rate")


class AddedTime(Paired):
    """Time of one variant minus that of another: what a wait of fixed length adds."""

    kind: Literal["added_time"] = "added_time"
    _form = "quantity"

    def figure_unit(self, units: Mapping[str, str]) -> str:
        return "s"

    def figure(self, evidence: Evidence) -> Figure:
        of, over = self._times(evidence, self.case)
        return evidence.over_rounds(self._known(of - over), DIFFERENCE)


class MeanSpeedup(Paired):
    """Speedup of one variant over another: geometric mean over several cases."""

    kind: Literal["mean_speedup"] = "mean_speedup"
    also: Annotated[Unique[str], Field(min_length=1)]
    """Further cases of the mean."""

    @property
    def title(self) -> str:
        return f"{super().title}, mean of {1 + len(self.also)} cases"

    def figure(self, evidence: Evidence) -> Figure:
        pairs = [self._times(evidence, case) for case in self.cases]
        ratios = [_by_round((over / of).dropna()) for of, over in pairs]
        means = math.prod(ratios, start=1.0) ** (1 / len(ratios))
        return evidence.over_rounds(self._known(means), evidence.kind_of_ratios(self.metric))


class Share(Paired):
    """Payload rate of a variant as a share of another variant's."""

    kind: Literal["share"] = "share"
    _form = "share"

    def figure(self, evidence: Evidence) -> Figure:
        return self._ratio(evidence, by_rate=True)


class BetweenCases(Bounded):
    """Payload rate of a variant in one case as a multiple of that in another, `over_case`."""

    kind: Literal["between_cases"] = "between_cases"
    of: Of
    metric: Metric = ""
    over_case: str
    """The case of the baseline."""

    @property
    def title(self) -> str:
        values = self.case.split(",")
        other = [value for value in self.over_case.split(",") if value not in values]
        return f"{self.of} over its rate at {','.join(other)}"

    def figure(self, evidence: Evidence) -> Figure:
        of, over = (evidence.times([self.of], case, self.metric)[0] for case in self.cases)
        pairs = _known(over / of, f"{self.of} has not been measured in both cases in one run")
        payloads = [evidence.payload(self.of, case) for case in self.cases]
        scaled = pairs * payloads[0] / payloads[1]
        return evidence.over_rounds(scaled, evidence.kind_of_ratios(self.metric))


class NearBest(Bounded):
    """Share of the cases in which a variant that chooses the value of a key is nearly as fast as
    with the best of some given values."""

    kind: Literal["near_best"] = "near_best"
    _form = "share"
    of: Of
    metric: Metric = ""
    also: Unique[str] = ()
    """Further cases in which it chooses."""
    given: Annotated[Unique[str], Field(min_length=1)]
    """Values of the key, as `key=value`. Each of the cases exists with each of them, too."""
    slower: Annotated[float, Field(gt=1)]
    """Maximum ratio of its time to the time with the best value."""

    @property
    def further_cases(self) -> Sequence[str]:
        chosen = (self.case, *self.also)
        return [*self.also, *(f"{case},{value}" for case in chosen for value in self.given)]

    @property
    def title(self) -> str:
        near = f"within {self.slower - 1:.0%} of the best"
        return f"{super().title} {near}, in {1 + len(self.also)} cases"

    def figure(self, evidence: Evidence) -> Figure:
        def seconds(case: str) -> pd.Series:
            return _by_round(evidence.times([self.of], case, self.metric)[0])

        near = []
        for case in (self.case, *self.also):
            chosen = seconds(case)
            is_near = chosen.notna().astype(float)
            for value in self.given:
                given = seconds(f"{case},{value}")
                is_near = is_near * ((chosen / given).dropna() <= self.slower)
            near.append(is_near)
        reason = f"{self.of} has not been measured in all cases in one run"
        return evidence.over_rounds(_known(sum(near[1:], near[0]) / len(near), reason), SHARE)


class ModelShare(Bounded):
    """The share of the predicted rate that is reached: predicted over measured time."""

    kind: Literal["model_share"] = "model_share"
    _form = "share"
    of: Of
    metric: Metric = ""

    def figure(self, evidence: Evidence) -> Figure:
        (seconds,) = evidence.times([self.of], self.case, self.metric)
        predicted = evidence.predicted_seconds(self.of, self.case, self.metric)
        return evidence.over_rounds(predicted / seconds)


class OfMetric(Bounded):
    """A metric of a variant, in its unit."""

    _form: Form = "quantity"
    of: Of
    metric: Metric

    def write_as_share(self) -> None:
        """Write its figures as shares of 1."""
        self._form = "share"

    def figure_unit(self, units: Mapping[str, str]) -> str:
        return units[self.metric]

    def figure(self, evidence: Evidence) -> Figure:
        visits = evidence.visits(self.of, self.case, self.metric)
        over = evidence.over_hosts if isinstance(self, MeanMeasured) else evidence.over_rounds
        published = evidence.published_seconds(self.of, self.case, self.metric)
        return replace(over(visits, evidence.kind(self.metric)), published=published)


class Measured(OfMetric):
    """A metric of a variant, in its unit."""

    kind: Literal["figure"] = "figure"


class MeanMeasured(OfMetric):
    """Mean of a metric of a variant over all possible hosts, in its unit. All other kinds predict
    the next run."""

    kind: Literal["mean_figure"] = "mean_figure"

    @property
    def title(self) -> str:
        return f"{super().title}, mean over hosts"


class Correct(Comparison):
    """A check of correctness: the variant must pass in every round of the runs in use.

    A wrong output leaves a failed row without a value, so no figure shows it.
    """

    kind: Literal["correct"] = "correct"
    of: Of

    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        check = evidence.check(self.of, self.case)
        if check.fault:
            return Outcome(FAILS, f"failed its check: {check.fault}", runs=check.runs)
        return Outcome(HOLDS, f"passed its check in {check.rounds} rounds", runs=check.runs)


class Counted(Bounded):
    """Its figures are ratios of hardware counters of one launch. They have no interval, because
    the same program with the same data counts the same."""

    on_counters: ClassVar[bool] = True
    of: Of
    counter: Counter
    """A counter of Nsight Compute, summed over a kernel."""

    def figure(self, evidence: Evidence) -> Figure:
        over, counter = getattr(self, "over", self.of), getattr(self, "per", self.counter)
        counted = evidence.count(self.of, self.case, self.counter)
        base = evidence.count(over, self.case, counter)
        if not base:
            raise Missing(f"{over} counted no {counter}")
        return _exact(counted / base)


class CountsPer(Counted):
    """A hardware counter of a variant over another of its counters, `per`, by a profile."""

    kind: Literal["counts_per"] = "counts_per"
    _form = "digits"
    per: Counter
    """The counter in the denominator."""

    @property
    def title(self) -> str:
        return f"{self.of} {self.counter} per {self.per}"


class CountsOver(Counted):
    """A hardware counter of one variant as a multiple of the same counter of another, by their
    profiles."""

    kind: Literal["counts_over"] = "counts_over"
    over: Over

    @property
    def title(self) -> str:
        return f"{super().title} {self.counter}"


class Units(Comparison):
    """Whether the rates printed in `printed` agree with the printed times only in `meant`."""

    kind: Literal["units"] = "units"
    on_rows: ClassVar[bool] = True
    printed: DataRate
    """The printed unit of the rates."""
    meant: DataRate
    """The true unit of the rates."""

    @property
    def title(self) -> str:
        return self.kind

    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        pairs = [
            (time, rate)
            for time in _printed_times(evidence.statements)
            for rate in evidence.statements
            if rate.unit_printed == self.printed
            and (rate.variant, rate.case) == (time.variant, time.case)
        ]
        if not pairs:
            raise Missing(f"no published row has both a time and a rate in {self.printed}")
        agrees = {
            unit: sum(_agree(time, rate, SI[unit][1]) for time, rate in pairs)
            for unit in (self.meant, self.printed)
        }
        factors = [time.rate / (float(rate.printed) * SI[self.printed][1]) for time, rate in pairs]
        figure = Figure(median(factors), min(factors), max(factors))
        holds = agrees[self.meant] == len(pairs) and agrees[self.printed] == 0
        counted = " and ".join(f"in {count} if read in {unit}" for unit, count in agrees.items())
        reason = f"payload over printed time is the printed rate {counted}, of {len(pairs)} rows"
        return Outcome(HOLDS if holds else FAILS, reason, figure)


class PrintedShare(Bounded):
    """The printed rate over a limit, both as printed and as payload over printed time."""

    kind: Literal["printed_share"] = "printed_share"
    on_rows: ClassVar[bool] = True
    _form = "share"
    of: Of
    limit: Positive
    """The limit of the printed rate, in `unit`."""
    unit: DataRate
    """The unit of `limit` and of the printed rate."""

    def figure(self, evidence: Evidence) -> Figure:
        printed = [s for s in evidence.statements if (s.variant, s.case) == (self.of, self.case)]
        rates = [statement for statement in printed if statement.unit_printed == self.unit]
        times = _printed_times(printed)
        if not rates or not times:
            raise Missing(f"{self.of} has no published time and rate in {self.unit}")
        share = _exact(times[0].rate / (self.limit * SI[self.unit][1]))
        return replace(share, published=float(rates[0].printed) / self.limit)


class PrintedSpeedup(Bounded):
    """The printed rate of one variant over that of another, where `source` printed both."""

    kind: Literal["printed_speedup"] = "printed_speedup"
    on_rows: ClassVar[bool] = True
    of: Of
    over: Over
    source: Sentence
    """The source, as in the published rows."""

    def figure(self, evidence: Evidence) -> Figure:
        of, over = (self._rate(evidence, name) for name in self.variants)
        return _exact(of / over)

    def _rate(self, evidence: Evidence, variant: str) -> float:
        for said in evidence.statements:
            is_of_it = (said.variant, said.case) == (variant, self.case)
            if is_of_it and said.source == self.source and not math.isnan(said.rate):
                return said.rate
        raise Missing(f"{self.source} printed no rate of {variant} in this case")


def _exact(value: float) -> Figure:
    """A figure that does not vary."""
    return Figure(value, value, value)


def _by_round(by_visit: pd.Series) -> pd.Series:
    """The medians of rounds."""
    return by_visit.groupby(["run", "round"]).median()


def _known(values: pd.Series, reason: str) -> pd.Series:
    """`values` that are known; Missing with the `reason` if there is none."""
    known = values.dropna()
    if known.empty:
        raise Missing(reason)
    return known


def _printed_times(statements: Sequence[Statement]) -> list[Statement]:
    """Statements of a time, of operations that deliver bytes."""
    return [s for s in statements if SI[s.unit_meant][0] == "s" and not math.isnan(s.rate)]


def _agree(time: Statement, rate: Statement, unit: float) -> bool:
    """Whether a time and a rate, rounded as printed, can belong to one operation.

    `unit` is in B/s; both printed numbers may be off by half of their last digit.
    """
    slack = sum(
        0.5 * 10.0 ** -len(printed.partition(".")[2]) / float(printed)
        for printed in (rate.printed, time.printed)
    )
    return math.isclose(time.rate, float(rate.printed) * unit, rel_tol=slack * 1.01)
