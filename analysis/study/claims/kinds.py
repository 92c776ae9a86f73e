"""The kinds of comparison that may test a claim: for each a function that computes its figure from
the evidence, and the keys that it has in study.yaml."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Protocol

from analysis.base.quantities import SI
from analysis.base.statistics import COUNT, DIFFERENCE, SHARE, TIME
from analysis.base.statistics import Kind as Values
from analysis.study.claims.verdicts import FAILS, HOLDS, Figure, Missing, NotTested, Outcome

if TYPE_CHECKING:
    import pandas as pd

    from analysis.study.claims.claim import Comparison
    from analysis.study.description import Study


class Evidence(Protocol):
    """Fresh, checked results of one study on one machine. Every method raises NotTested, with the
    reason, if the figure is missing.

    study, published: the study, and its published figures, by `PublishedRow`
    visits: a metric in its unit by run, round and visit
    times: seconds of each variant by run, round and visit, in one metric; without one, in the
        preferred one that all variants have
    over_rounds, over_hosts: the figure over all runs in `by_visit`, by `statistics.estimate`, and
        the mean over their hosts, by `statistics.mean_estimate`
    published_seconds: published time of one operation; NaN if there is none in `metric`
    predicted_seconds: predicted time in `metric`, or in the study's first time metric
    count: a hardware counter of one operation, summed over its kernels
    check: the outcome of the output checks in the runs of the summary
    """

    study: Study
    published: pd.DataFrame

    def visits(self, variant: str, case: str, metric: str) -> pd.Series: ...
    def times(self, variants: Sequence[str], case: str, metric: str) -> Sequence[pd.Series]: ...
    def over_rounds(self, by_visit: pd.Series, kind: Values = TIME) -> Figure: ...
    def over_hosts(self, by_visit: pd.Series, kind: Values = TIME) -> Figure: ...
    def published_seconds(self, variant: str, case: str, metric: str = "") -> float: ...
    def predicted_seconds(self, variant: str, case: str, metric: str) -> float: ...
    def count(self, variant: str, case: str, counter: str) -> float: ...
    def check(self, variant: str, case: str) -> Outcome: ...


Compute = Callable[["Comparison", Evidence], "Figure | Outcome"]
"""Figure of a comparison, or its outcome if it has no bound. Raises NotTested."""


@dataclass(frozen=True)
class Kind:
    """A kind of comparison: the keys that it needs and may have, and the unit in which pages write
    its figure: x for a ratio, % for a share, s, 1 for a count, empty for that of its metric.

    `on_rows`: it uses only the published rows, so that it is judged once and not per machine.
    `on_counters`: it uses only the counters of a profiler, and no samples.
    """

    compute: Compute
    about: str
    needs: frozenset[str]
    may_have: frozenset[str]
    written: str = "x"
    is_bounded: bool = True
    on_rows: bool = False
    on_counters: bool = False


KINDS: Final[dict[str, Kind]] = {}
"""Every kind of comparison, by its `kind` in study.yaml."""


def kind(
    name: str, needs: str, may_have: str = "", *, about: str = "", **properties: Any
) -> Callable[[Compute], Compute]:
    """Registers a function that computes figures of a kind: the keys, and what the kind compares,
    if that is not the function's docstring."""

    def register(compute: Compute) -> Compute:
        keys = frozenset(needs.split()), frozenset(may_have.split())
        KINDS[name] = Kind(compute, about or inspect.getdoc(compute) or "", *keys, **properties)
        return compute

    return register


@kind(
    *("share", "of over", "metric"),
    about="Payload rate of a variant as a share of another variant's.",
    written="%",
)
@kind("speedup", "of over", "metric by")
def _speedup(test: Comparison, evidence: Evidence) -> Figure:
    """Speedup of one variant over another; by rate if rows differ in size."""
    of, over = evidence.times(test.variants, test.case, test.metric)
    scale = 1.0
    if test.by == "rate" or test.kind == "share":
        scale = _bytes_ratio(evidence, (test.of, test.case), (test.over, test.case))
    pairs = _in_one_run(test, over / of) * scale
    printed = [evidence.published_seconds(name, test.case) for name in test.variants]
    return replace(_of_ratios(test, evidence, pairs), published=scale * printed[1] / printed[0])


@kind("added_time", "of over", "metric", written="s")
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
    return _of_ratios(test, evidence, _in_one_run(test, means))


@kind("between_cases", "of over_case", "metric")
def _between_cases(test: Comparison, evidence: Evidence) -> Figure:
    """Payload rate of a variant in one case as a multiple of that in another, `over_case`."""
    of, over = (evidence.times([test.of], case, test.metric)[0] for case in test.cases)
    pairs = _known(over / of, f"{test.of} has not been measured in both cases in one run")
    scale = _bytes_ratio(evidence, *((test.of, case) for case in test.cases))
    return _of_ratios(test, evidence, pairs * scale)


@kind("near_best", "of given slower", "metric also", written="%")
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
    share = sum(near[1:], near[0]) / len(near)
    reason = f"{test.of} has not been measured in all cases in one run"
    return evidence.over_rounds(_known(share, reason), SHARE)


@kind("model_share", "of", "metric", written="%")
def _model_share(test: Comparison, evidence: Evidence) -> Figure:
    """The share of the predicted rate that is reached: predicted over measured time."""
    (seconds,) = evidence.times([test.of], test.case, test.metric)
    predicted = evidence.predicted_seconds(test.of, test.case, test.metric)
    return evidence.over_rounds(predicted / seconds)


@kind(
    *("mean_figure", "of metric"),
    about="Mean of a metric of a variant over all possible hosts, in its unit. All other kinds"
    " predict the next run.",
    written="",
)
@kind("figure", "of metric", written="")
def _figure(test: Comparison, evidence: Evidence) -> Figure:
    """A metric of a variant, in its unit."""
    visits = evidence.visits(test.of, test.case, test.metric)
    over = evidence.over_hosts if test.kind == "mean_figure" else evidence.over_rounds
    published = evidence.published_seconds(test.of, test.case, test.metric)
    figure = over(visits, evidence.study.metrics[test.metric].values)
    return replace(figure, published=published)


@kind("correct", "of", is_bounded=False)
def _correct(test: Comparison, evidence: Evidence) -> Outcome:
    """A check of correctness: the variant must pass in every round of the runs in use.

    A wrong output leaves a failed row without a value, so no figure shows it.
    """
    return evidence.check(test.of, test.case)


@kind(
    *("counts_over", "of over counter"),
    about="A hardware counter of one variant as a multiple of the same counter of another, by their"
    " profiles.",
    on_counters=True,
)
@kind("counts_per", "of counter per", written="1", on_counters=True)
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
    printed = evidence.published
    of_rate = printed[printed["unit_printed"] == test.printed]
    times = _printed_times(printed)
    pairs = times.merge(of_rate, on=["variant", "case"], suffixes=("_of_time", ""))
    if pairs.empty:
        raise Missing(f"no published row has both a time and a rate in {test.printed}")
    rates, numbers = pairs["rate_of_time"] * 1e9, pairs["printed"].astype(float)
    # Both printed numbers may be off by half of their last digit.
    slack = sum(
        0.5 * 10.0 ** -text.str.partition(".")[2].str.len() / text.astype(float)
        for text in (pairs["printed"], pairs["printed_of_time"])
    )
    agrees = {
        unit: sum(abs(rates / (numbers * SI[unit][1]) - 1) <= slack * 1.01)
        for unit in (test.meant, test.printed)
    }
    factors = (rates / (numbers * SI[test.printed][1])).tolist()
    figure = Figure(median(factors), min(factors), max(factors))
    holds = agrees[test.meant] == len(pairs) and agrees[test.printed] == 0
    counted = " and ".join(f"in {count} if read in {unit}" for unit, count in agrees.items())
    reason = f"payload over printed time is the printed rate {counted}, of {len(pairs)} rows"
    return Outcome(HOLDS if holds else FAILS, reason, figure)


@kind("printed_share", "of limit unit", written="%", on_rows=True)
def _printed_share(test: Comparison, evidence: Evidence) -> Figure:
    """The printed rate over a limit, both as printed and as payload over printed time."""
    printed = evidence.published
    printed = printed[(printed["variant"] == test.of) & (printed["case"] == test.case)]
    rates = printed.loc[printed["unit_printed"] == test.unit, "printed"]
    times = _printed_times(printed)
    if rates.empty or times.empty:
        raise Missing(f"{test.of} has no published time and rate in {test.unit}")
    limit = test.limit or 1
    share = _exact(times["rate"].iloc[0] * 1e9 / (limit * SI[test.unit][1]))
    return replace(share, published=float(rates.iloc[0]) / limit)


@kind("printed_speedup", "of over source", on_rows=True)
def _printed_speedup(test: Comparison, evidence: Evidence) -> Figure:
    """The printed rate of one variant over that of another, where `source` printed both."""
    printed = evidence.published
    is_meant = (printed["source"] == test.source) & (printed["case"] == test.case)
    rates = printed[is_meant].dropna(subset="rate").groupby("variant")["rate"].first()
    for name in test.variants:
        if name not in rates:
            raise Missing(f"{test.source} printed no rate of {name} in this case")
    return _exact(rates[test.of] / rates[test.over])


def _of_ratios(test: Comparison, evidence: Evidence, by_visit: pd.Series) -> Figure:
    """The figure of ratios of the metric, of times if the test names none."""
    is_time = not test.metric or evidence.study.metrics[test.metric].values is TIME
    return evidence.over_rounds(by_visit, TIME if is_time else COUNT)


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


def _bytes_ratio(evidence: Evidence, *places: tuple[str, str]) -> float:
    """The payload of one operation over that of another; (variant, case) of both."""
    of, over = (evidence.study.payloads[place] for place in places)
    if not of or not over:
        raise NotTested(f"{places[bool(of)][0]} delivers no bytes")
    return of / over


def _printed_times(printed: pd.DataFrame) -> pd.DataFrame:
    """Published rows of a time, of operations that deliver bytes."""
    return printed[printed["is_time"].astype(bool) & printed["rate"].notna()]
