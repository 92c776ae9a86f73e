"""The kinds of comparison that may test a claim: for each a function that computes its figure, and
the keys that it has in study.yaml."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import BaseModel, Field, PrivateAttr, model_validator

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
Form = Literal["ratio", "share", "quantity", "digits"]
Compute = Callable[["Comparison", Evidence], "Figure | Outcome"]
"""Figure of a comparison, or its outcome if it has no bound. Raises NotTested."""


@dataclass(frozen=True)
class Kind:
    """A kind of comparison: the keys that it needs and may have, and the form of its figure.

    `on_rows`: it uses only the published rows, so that it is judged once and not per machine.
    `on_counters`: it uses only the counters of a profiler, and no samples.
    """

    compute: Compute
    about: str
    needs: frozenset[str]
    may_have: frozenset[str]
    form: Form
    is_bounded: bool
    on_rows: bool
    on_counters: bool


KINDS: Final[dict[str, Kind]] = {}
"""Every kind of comparison, by its `kind` in study.yaml."""


def kind(
    name: str,
    needs: str,
    may_have: str = "",
    form: Form = "ratio",
    *,
    about: str = "",
    is_bounded: bool = True,
    on_rows: bool = False,
    on_counters: bool = False,
) -> Callable[[Compute], Compute]:
    """Registers a function that computes figures of a kind: the keys, and what the kind compares,
    if that is not the function's docstring."""

    def register(compute: Compute) -> Compute:
        said = about or inspect.getdoc(compute) or ""
        keys = frozenset(needs.split()), frozenset(may_have.split())
        KINDS[name] = Kind(compute, said, *keys, form, is_bounded, on_rows, on_counters)
        return compute

    return register


@kind(
    *("share", "of over", "metric", "share"),
    about="Payload rate of a variant as a share of another variant's.",
)
@kind("speedup", "of over", "metric by")
def _speedup(test: Comparison, evidence: Evidence) -> Figure:
    """Speedup of one variant over another; by rate if rows differ in size."""
    of, over = evidence.times(test.variants, test.case, test.metric)
    scale = 1.0
    if test.by == "rate" or test.kind == "share":
        payloads = [evidence.payload(name, test.case) for name in test.variants]
        scale = payloads[0] / payloads[1]
    pairs = _in_one_run(test, over / of) * scale
    printed = [evidence.published_seconds(name, test.case) for name in test.variants]
    figure = evidence.over_rounds(pairs, evidence.kind_of_ratios(test.metric))
    return replace(figure, published=scale * printed[1] / printed[0])


@kind("added_time", "of over", "metric", "quantity")
def _added_time(test: Comparison, evidence: Evidence) -> Figure:
    """Time of one variant minus that of another: what a wait of fixed length adds."""
    of, over = evidence.times(test.variants, test.case, test.metric)
    return evidence.over_rounds(_in_one_run(test, of - over), DIFFERENCE)


@kind("mean_speedup", "of over also", "metric")
def _mean_speedup(test: Comparison, evidence: Evidence) -> Figure:
    """Speedup of one variant over another: geometric mean over several cases."""
    pairs = [evidence.times(test.variants, case, test.metric) for case in test.cases]
    ratios = [_by_round((over / of).dropna()) for of, over in pairs]
    means = math.prod(ratios, start=1.0) ** (1 / len(ratios))
    return evidence.over_rounds(_in_one_run(test, means), evidence.kind_of_ratios(test.metric))


@kind("between_cases", "of over_case", "metric")
def _between_cases(test: Comparison, evidence: Evidence) -> Figure:
    """Payload rate of a variant in one case as a multiple of that in another, `over_case`."""
    of, over = (evidence.times([test.of], case, test.metric)[0] for case in test.cases)
    pairs = _known(over / of, f"{test.of} has not been measured in both cases in one run")
    payloads = [evidence.payload(test.of, case) for case in test.cases]
    scaled = pairs * payloads[0] / payloads[1]
    return evidence.over_rounds(scaled, evidence.kind_of_ratios(test.metric))


@kind("near_best", "of given slower", "metric also", "share")
def _near_best(test: Comparison, evidence: Evidence) -> Figure:
    """Share of the cases in which a variant that chooses the value of a key is nearly as fast as
    with the best of some given values."""

    def seconds(case: str) -> pd.Series:
        return _by_round(evidence.times([test.of], case, test.metric)[0])

    near = []
    for case in (test.case, *test.also):
        chosen = seconds(case)
        is_near = chosen.notna().astype(float)
        for value in test.given:
            given = seconds(f"{case},{value}")
            is_near = is_near * ((chosen / given).dropna() <= (test.slower or 1))
        near.append(is_near)
    reason = f"{test.of} has not been measured in all cases in one run"
    return evidence.over_rounds(_known(sum(near[1:], near[0]) / len(near), reason), SHARE)


@kind("model_share", "of", "metric", "share")
def _model_share(test: Comparison, evidence: Evidence) -> Figure:
    """The share of the predicted rate that is reached: predicted over measured time."""
    (seconds,) = evidence.times([test.of], test.case, test.metric)
    predicted = evidence.predicted_seconds(test.of, test.case, test.metric)
    return evidence.over_rounds(predicted / seconds)


@kind(
    *("mean_figure", "of metric", "", "quantity"),
    about="Mean of a metric of a variant over all possible hosts, in its unit. All other kinds"
    " predict the next run.",
)
@kind("figure", "of metric", "", "quantity")
def _figure(test: Comparison, evidence: Evidence) -> Figure:
    """A metric of a variant, in its unit."""
    visits = evidence.visits(test.of, test.case, test.metric)
    over = evidence.over_hosts if test.kind == "mean_figure" else evidence.over_rounds
    published = evidence.published_seconds(test.of, test.case, test.metric)
    return replace(over(visits, evidence.kind(test.metric)), published=published)


@kind("correct", "of", is_bounded=False)
def _correct(test: Comparison, evidence: Evidence) -> Outcome:
    """A check of correctness: the variant must pass in every round of the runs in use.

    A wrong output leaves a failed row without a value, so no figure shows it.
    """
    check = evidence.check(test.of, test.case)
    if check.fault:
        return Outcome(FAILS, f"failed its check: {check.fault}", runs=check.runs)
    return Outcome(HOLDS, f"passed its check in {check.rounds} rounds", runs=check.runs)


@kind(
    *("counts_over", "of over counter"),
    about="A hardware counter of one variant as a multiple of the same counter of another, by their"
    " profiles.",
    on_counters=True,
)
@kind("counts_per", "of counter per", "", "digits", on_counters=True)
def _counts_per(test: Comparison, evidence: Evidence) -> Figure:
    """A hardware counter of a variant over another of its counters, `per`, by a profile."""
    over, counter = test.over or test.of, test.per or test.counter
    counted = evidence.count(test.of, test.case, test.counter)
    base = evidence.count(over, test.case, counter)
    if not base:
        raise Missing(f"{over} counted no {counter}")
    return _exact(counted / base)


@kind("units", "printed meant", is_bounded=False, on_rows=True)
def _units(test: Comparison, evidence: Evidence) -> Outcome:
    """Whether the rates printed in `printed` agree with the printed times only in `meant`."""
    pairs = [
        (time, rate)
        for time in _printed_times(evidence.statements)
        for rate in evidence.statements
        if rate.unit_printed == test.printed
        and (rate.variant, rate.case) == (time.variant, time.case)
    ]
    if not pairs:
        raise Missing(f"no published row has both a time and a rate in {test.printed}")
    agrees = {
        unit: sum(_agree(time, rate, SI[unit][1]) for time, rate in pairs)
        for unit in (test.meant, test.printed)
    }
    factors = [time.rate / (float(rate.printed) * SI[test.printed][1]) for time, rate in pairs]
    figure = Figure(median(factors), min(factors), max(factors))
    holds = agrees[test.meant] == len(pairs) and agrees[test.printed] == 0
    counted = " and ".join(f"in {count} if read in {unit}" for unit, count in agrees.items())
    reason = f"payload over printed time is the printed rate {counted}, of {len(pairs)} rows"
    return Outcome(HOLDS if holds else FAILS, reason, figure)


@kind("printed_share", "of limit unit", "", "share", on_rows=True)
def _printed_share(test: Comparison, evidence: Evidence) -> Figure:
    """The printed rate over a limit, both as printed and as payload over printed time."""
    printed = [s for s in evidence.statements if (s.variant, s.case) == (test.of, test.case)]
    rates = [statement for statement in printed if statement.unit_printed == test.unit]
    times = _printed_times(printed)
    if not rates or not times:
        raise Missing(f"{test.of} has no published time and rate in {test.unit}")
    limit = test.limit or 1
    share = _exact(times[0].rate / (limit * SI[test.unit][1]))
    return replace(share, published=float(rates[0].printed) / limit)


@kind("printed_speedup", "of over source", on_rows=True)
def _printed_speedup(test: Comparison, evidence: Evidence) -> Figure:
    """The printed rate of one variant over that of another, where `source` printed both."""
    rates: dict[str, float] = {}
    for said in reversed(evidence.statements):
        if said.source == test.source and said.case == test.case and not math.isnan(said.rate):
            rates[said.variant] = said.rate
    for name in test.variants:
        if name not in rates:
            raise Missing(f"{test.source} printed no rate of {name} in this case")
    return _exact(rates[test.of] / rates[test.over])


def _exact(value: float) -> Figure:
    """A figure that does not vary."""
    return Figure(value, value, value)


def _by_round(by_visit: pd.Series) -> pd.Series:
    """The medians of rounds."""
    return by_visit.groupby(["run", "round"]).median()


def _in_one_run(test: Comparison, values: pd.Series) -> pd.Series:
    """The visits that both variants have; Missing if there is none."""
    return _known(values, f"{test.of} and {test.over} have not been measured in one run")


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


Counter = Annotated[str, Field(pattern=r"^[a-z]+__[a-z0-9_]+\.sum$")]
if TYPE_CHECKING:
    KindName = str
    DataRate = str
else:
    KindName = Literal[tuple(KINDS)]
    DataRate = Literal["B/s", "MB/s", "GB/s", "MiB/s", "GiB/s", "Gbps"]


class Comparison(BaseModel, extra="forbid", use_attribute_docstrings=True):
    """A kind, its subjects, and the threshold that its figure must meet."""

    kind: KindName
    """What is compared."""
    case: str = ""
    """key=value pairs joined by commas, as in results; the headline case if omitted."""
    in_each: Unique[str] = ()
    """Such cases, in place of `case`: the entry of `all` stands for a comparison in each."""
    of: str = ""
    """The variant of the claim."""
    over: str = ""
    """The baseline."""
    metric: str = ""
    """The metric to compare. If optional, the default is the first time of a whole operation that
    the variants have, but not gpu_time if the CPU works in one of them."""
    at_least: Positive | None = None
    """The figure's whole interval must lie at or above this."""
    at_most: Positive | None = None
    """The figure's whole interval must lie at or below this."""
    within: Annotated[float, Field(gt=0, le=1)] | None = None
    """The figure's whole interval must lie within this margin around the published figure, a share
    of that."""
    by: Literal["time", "rate"] = "time"
    """Compare times (default), or payload rates if the variants' rows differ in size."""
    also: Unique[str] = ()
    """Further cases of a mean or of a choice."""
    over_case: str = ""
    """The case of the baseline."""
    given: Unique[str] = ()
    """Values of the chosen key, as `key=value`. Each of the cases exists with each of them, too."""
    slower: Annotated[float, Field(gt=1)] | None = None
    """Maximum ratio of its time to the time with the best value."""
    counter: Counter = ""
    """A counter of Nsight Compute, summed over a kernel."""
    per: Counter = ""
    """The counter in the denominator."""
    printed: DataRate = ""
    """The printed unit of the rates."""
    meant: DataRate = ""
    """The true unit of the rates."""
    limit: Positive | None = None
    """The limit of the printed rate, in `unit`."""
    unit: DataRate = ""
    """The unit of `limit` and of the printed rate."""
    source: Sentence = ""
    """The source of printed figures, as in the published rows."""

    _is_share: bool = PrivateAttr(False)

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        kind = KINDS[self.kind]
        given = self.model_fields_set - {"kind", "case", "in_each", *BOUNDS}
        if not kind.needs <= given <= kind.needs | kind.may_have:
            may_have = f" and of {sorted(kind.may_have)}" if kind.may_have else ""
            raise Fault(f"{sorted(kind.needs)}{may_have} for {self.kind}", sorted(given))
        bounds = [name for name in BOUNDS if getattr(self, name) is not None]
        if len(bounds) != kind.is_bounded:
            raise Fault(f"exactly one of {list(BOUNDS)}" if kind.is_bounded else "no bound", bounds)
        return self

    @property
    def about_kind(self) -> Kind:
        return KINDS[self.kind]

    @property
    def variants(self) -> list[str]:
        """The compared variants."""
        return [name for name in (self.of, self.over) if name]

    @property
    def cases(self) -> list[str]:
        """The ids of all its cases."""
        cases = [case for case in (self.case, self.over_case, *self.also) if case]
        return [*cases, *(f"{case},{value}" for case in cases for value in self.given)]

    @property
    def title(self) -> str:
        """The compared variants and metric, in words."""
        plain = " ".join(filter(None, [" over ".join(self.variants), self.metric]))
        match self.kind:
            case "speedup" if self.by == "rate":
                return f"{plain} by rate"
            case "mean_speedup":
                return f"{plain}, mean of {1 + len(self.also)} cases"
            case "between_cases":
                values = {*self.case.split(",")}
                other = [value for value in self.over_case.split(",") if value not in values]
                return f"{self.of} over its rate at {','.join(other)}"
            case "near_best":
                near = f"within {(self.slower or 1) - 1:.0%} of the best"
                return f"{plain} {near}, in {1 + len(self.also)} cases"
            case "mean_figure":
                return f"{plain}, mean over hosts"
            case "counts_per":
                return f"{plain} {self.counter} per {self.per}"
            case "counts_over":
                return f"{plain} {self.counter}"
        return plain or self.kind

    def figure_unit(self, units: Mapping[str, str]) -> str:
        """SI base unit of its figure; 1 for ratios, shares and counts. `units` are by metric."""
        if self.kind == "added_time":
            return "s"
        return units[self.metric] if self.kind in ("figure", "mean_figure") else "1"

    def judge(self, evidence: Evidence, published: float | None = None) -> Outcome:
        """The outcome; `published` replaces the figure of the published rows."""
        try:
            figure = self.about_kind.compute(self, evidence)
        except NotTested as reason:
            return Outcome(NOT_TESTED, str(reason), runs=reason.runs)
        if isinstance(figure, Outcome):
            return figure
        if published is not None:
            figure = replace(figure, published=published)
        return verdicts.outcome_of(figure, *self._bound)

    @property
    def _bound(self) -> tuple[str, float]:
        """The key of the bound and its threshold."""
        return next((name, value) for name in BOUNDS if (value := getattr(self, name)))

    def room(self, figure: Figure) -> float:
        """Distance from the bound, as a share of it; negative if the figure violates it."""
        return verdicts.room(figure, *self._bound) if self.about_kind.is_bounded else 0.0

    def write_as_share(self) -> None:
        """Write its figures as shares of 1."""
        self._is_share = True

    @property
    def _form(self) -> Form:
        return "share" if self._is_share else self.about_kind.form

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
