"""Results of one study on one machine: the evidence for its claims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis.base.statistics import COUNT, MIN_RUNS, TIME, Estimate, Kind, estimate, mean_estimate
from analysis.results.disturbance import slowed_share
from analysis.results.store.published import best_statement
from analysis.results.tables.medians import (
    Rounds,
    by_visit,
    chosen,
    medians_of,
    rounds_by_run,
)
from analysis.study import Study
from analysis.study.claims import Claim
from analysis.study.claims.evidence import Check, Statement
from analysis.study.claims.verdicts import Figure, Missing, NotTested

MAX_SLOWED_SHARE: Final = 0.5
"""Maximum share of a cell's samples with a slowed-down GPU for a claim to be tested on the cell."""
NO_ESTIMATE: Final = Estimate(math.nan, math.nan, math.nan)


class MachineResults:
    """`Evidence` for the claims of one study on one machine, of which all tables are: `samples` as
    collected, `counted` by `counts`, `model` the predictions, `published` the published figures.
    """

    def __init__(
        self,
        study: Study,
        samples: pd.DataFrame,
        published: pd.DataFrame,
        model: pd.DataFrame,
        counted: pd.DataFrame,
    ) -> None:
        self.study, self.samples = study, samples
        self._published, self._model, self._counted = published, model, counted
        used = chosen(samples)
        is_fresh = ~used["stale"].astype(bool)
        good = used[is_fresh & (used["status"] == "ok") & (used["verified"] == 1)]
        medians = by_visit(good, {study.name: study})
        self._by_visit = medians.droplevel(["machine", "study", "unit", "host"])
        self._used, self._places = used, used.groupby(["variant", "case"]).indices
        self._run = {*used.loc[is_fresh & (used["status"] != "skipped"), "variant"]}
        self._hosts = dict(zip(samples["run"], samples["host"], strict=True))
        self._parts: dict[frozenset[str], MachineResults] = {}

    def judging(self, claim: Claim) -> MachineResults:
        """Evidence of only the runs and profiles that recorded the bounds of the claim."""
        runs = self._recorded
        others = frozenset(runs.loc[~_records(runs, claim), "run"])
        if others not in self._parts:  # many claims are judged by the same runs
            kept = self.samples[~self.samples["run"].isin(others)]
            tables = kept, self._published, self._model, self._counted
            self._parts[others] = MachineResults(self.study, *tables) if others else self
        evidence = copy(self._parts[others])
        evidence._counted = self._counted[_records(self._counted, claim)]
        return evidence

    @cached_property
    def _recorded(self) -> pd.DataFrame:
        """Each variant and run, with the digests of current claims that the run records."""
        return self.samples.drop_duplicates(["variant", "run"])[["variant", "run", "named"]]

    def has(self, claim: Claim) -> bool:
        """Whether each variant of the claim has been measured, or profiled for a claim on counters,
        with its current code."""
        known = {*self._counted["variant"]} if claim.on_counters else self._run
        return {*claim.variants} <= known

    def hosts_of(self, runs: Iterable[str]) -> int:
        """Number of hosts of `runs`."""
        return len({self._hosts[run] for run in runs})

    def _rows_of(self, variant: str, case: str) -> pd.DataFrame:
        rows: pd.DataFrame = self._used.iloc[self._places.get((variant, case), [])]
        return rows

    def visits(self, variant: str, case: str, metric: str) -> pd.Series:
        try:
            found: pd.Series = self._by_visit.loc[variant, case, metric]
        except KeyError:
            raise self._absence(variant, case, metric) from None
        share = slowed_share(self._rows_of(variant, case)["throttle"].tolist())
        if share > MAX_SLOWED_SHARE:
            raise NotTested(f"{variant} was slowed down in {share:.0%} of its samples")
        return found

    def _absence(self, variant: str, case: str, what: str) -> NotTested:
        """Why there are no fresh, checked samples with `what`."""
        rows = self._rows_of(variant, case)
        if rows.empty:
            return Missing(f"{variant} has not been measured in this case")
        status, reason = rows.iloc[0][["status", "reason"]]
        if status == "skipped":
            return NotTested(f"{variant} was skipped: {reason}")
        if rows["stale"].all():
            return NotTested(f"measured with other code: {variant}")
        if status == "failed":
            return NotTested(f"{variant} failed its check: {reason}")
        if not rows["verified"].all():
            return Missing(f"the output of {variant} was not checked")
        return Missing(f"{variant} has no {what}")

    def times(self, variants: Sequence[str], case: str, metric: str) -> list[pd.Series]:
        compared = [self.study.variant(name) for name in variants]
        reasons = [NotTested("no metric compares the two")]
        for name in [metric] if metric else self.study.metrics_for(*compared):
            try:
                return [self.visits(variant, case, name) for variant in variants]
            except NotTested as reason:
                reasons.append(reason)
        raise reasons[:2][-1]

    def kind(self, metric: str) -> Kind:
        return self.study.metrics[metric].values

    def kind_of_ratios(self, metric: str) -> Kind:
        return TIME if metric == "" or self.kind(metric) is TIME else COUNT

    def over_rounds(self, by_visit: pd.Series, kind: Kind = TIME) -> Figure:
        runs, by_host = self._by_run_and_host(by_visit)
        mean = mean_estimate(by_host, kind) if len(by_host) >= MIN_RUNS else NO_ESTIMATE
        return _figure(estimate([*runs.values()], kind), runs, by_host, mean)

    def over_hosts(self, by_visit: pd.Series, kind: Kind = TIME) -> Figure:
        runs, by_host = self._by_run_and_host(by_visit)
        if len(by_host) < MIN_RUNS:
            needed = f"a mean over hosts needs {MIN_RUNS} of them, got {len(by_host)}"
            raise NotTested(needed, runs)
        return _figure(mean_estimate(by_host, kind), runs, by_host)

    def _by_run_and_host(self, by_visit: pd.Series) -> tuple[Rounds, list[float]]:
        """The medians of the rounds of each run, and the median over its runs of each host."""
        runs = rounds_by_run(by_visit, []).get((), {})
        medians = pd.Series(dict(zip(runs, medians_of(runs), strict=True)))
        return runs, medians.groupby(self._hosts).median().tolist()

    def payload(self, variant: str, case: str) -> int:
        payload = self.study.payloads[variant, case]
        if not payload:
            raise NotTested(f"{variant} delivers no bytes")
        return payload

    @cached_property
    def statements(self) -> list[Statement]:
        rows = self._published[list(Statement._fields)]
        rows = rows.assign(rate=rows["rate"] * 1e9)
        return [Statement(*row) for row in rows.itertuples(index=False, name=None)]

    def published_seconds(self, variant: str, case: str, metric: str = "") -> float:
        """As in the first of several sources."""
        rows = best_statement(self._published)
        rows = rows[(rows["variant"] == variant) & (rows["case"] == case)].head(1)
        if metric:
            rows = rows[rows["metric"] == metric]
        return math.nan if rows.empty else float(rows["seconds"].iloc[0])

    def predicted_seconds(self, variant: str, case: str, metric: str) -> float:
        metric = metric or self.study.time_metrics[0]
        predicted = _value(self._model, "predicted", variant, case, metric)
        if predicted is None:
            raise Missing("no model prediction")
        return predicted

    def count(self, variant: str, case: str, counter: str) -> float:
        counted = _value(self._counted, "counted", variant, case, counter)
        if counted is None:
            raise Missing(f"no fresh profile of {variant} has {counter} in this case")
        return counted

    def check(self, variant: str, case: str) -> Check:
        rows = self._rows_of(variant, case)
        rows = rows[~rows["stale"].astype(bool)]
        failed = rows.loc[rows["status"] == "failed", "reason"]
        checked = rows[rows["status"] == "ok"]
        if failed.empty and (checked.empty or not checked["verified"].all()):
            raise self._absence(variant, case, "check")
        rounds = checked[["run", "round"]].drop_duplicates()
        return Check(frozenset(rows["run"]), len(rounds), *failed.astype(str).iloc[:1])


def _figure(
    value: Estimate, runs: Rounds, by_host: Sequence[float], mean: Estimate = NO_ESTIMATE
) -> Figure:
    by_run = tuple(medians_of(runs))
    ends = (mean.low, mean.high)
    return Figure(*value, mean=ends, by_run=by_run, runs=frozenset(runs), hosts=len(by_host))


def _records(rows: pd.DataFrame, claim: Claim) -> Any:
    """Mask of the `rows` whose run or profile, `named`, records the bounds of the claim
    for the row's variant."""
    needed, none = claim.bounds_by_variant, frozenset[str]()
    pairs = zip(rows["variant"], rows["named"], strict=True)
    return np.array([needed.get(variant, none) <= named for variant, named in pairs], bool)


def _value(table: pd.DataFrame, column: str, variant: str, case: str, metric: str) -> float | None:
    """The first known value of a metric of a variant in a case."""
    is_of = (table["variant"] == variant) & (table["case"] == case) & (table["metric"] == metric)
    values = table.loc[is_of, column].dropna()
    return None if values.empty else float(values.iloc[0])
