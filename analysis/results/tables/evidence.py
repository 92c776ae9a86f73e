"""Results of one study on one machine: the evidence for its claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import median
from typing import Any, Final

import pandas as pd

from analysis.base.statistics import COUNT, MIN_RUNS, TIME, Kind, estimate, mean_estimate
from analysis.results.collect import chosen, fresh, visits
from analysis.results.disturbance import slowed_share
from analysis.results.store.published import best_statement
from analysis.study import Study
from analysis.study.claims import Claim
from analysis.study.claims.evidence import Check, Statement
from analysis.study.claims.verdicts import Figure, Missing, NotTested

Rounds = Mapping[str, list[float]]
"""Medians of the rounds of each run, oldest first."""
MAX_SLOWED_SHARE: Final = 0.5
"""Maximum share of a cell's samples with a slowed-down GPU for a claim to be tested on the cell."""


@dataclass(frozen=True)
class MachineResults:
    """Evidence for the claims of one study on one machine.

    Rows about this study and machine: `samples` of the collected samples, `counted` of
    `counts`, `model` of the model's table. `published` has the study's published figures.
    """

    study: Study
    samples: pd.DataFrame
    published: pd.DataFrame
    model: pd.DataFrame
    counted: pd.DataFrame

    @cached_property
    def used(self) -> pd.DataFrame:
        """Samples of all fresh runs, as used by the summary."""
        return chosen(self.samples)

    @cached_property
    def by_visit(self) -> pd.Series:
        """Medians of fresh, checked samples by variant, case, metric, run, round and visit."""
        good = fresh(self.used)
        good = good[good["verified"] == 1]
        good = good.assign(visit=visits(good, {self.study.name: self.study}))
        keys = ["variant", "case", "metric", "run", "round", "visit"]
        medians: pd.Series = good.groupby(keys)["value"].median()
        return medians

    def judging(self, claim: Claim) -> MachineResults:
        """Evidence of only the runs and profiles that recorded the bounds of the claim."""
        needed = claim.bounds_by_variant
        others = {
            run
            for variant, run, recorded in self._recorded
            if not needed.get(variant, frozenset()) <= recorded
        }
        evidence = self._without(frozenset(others))
        if not claim.on_counters:
            return evidence
        pairs = zip(self.counted["variant"], self.counted["named"], strict=True)
        is_recorded = [needed.get(variant, frozenset()) <= recorded for variant, recorded in pairs]
        return replace(evidence, counted=self.counted[is_recorded])

    @cached_property
    def _recorded(self) -> list[tuple[str, str, frozenset[str]]]:
        """Each variant and run, with the digests of current claims that the run records."""
        rows = self.samples.drop_duplicates(["variant", "run"])[["variant", "run", "named"]]
        return list(rows.itertuples(index=False, name=None))

    @cached_property
    def _without(self) -> Callable[[frozenset[str]], MachineResults]:
        """Evidence without some runs. Cached, because many claims are judged by the same runs."""

        @cache
        def without(runs: frozenset[str]) -> MachineResults:
            kept = self.samples[~self.samples["run"].isin(runs)]
            return replace(self, samples=kept) if runs else self

        return without

    def has(self, claim: Claim) -> bool:
        """Whether each variant of the claim has been measured, or profiled for a claim on counters,
        with its current code."""
        known = frozenset(self.counted["variant"]) if claim.on_counters else self._measured
        return known.issuperset(claim.variants)

    @cached_property
    def _measured(self) -> frozenset[str]:
        is_measured = (self.used["status"] != "skipped") & ~self.used["stale"].astype(bool)
        return frozenset(self.used.loc[is_measured, "variant"])

    def _rows_of(self, variant: str, case: str) -> pd.DataFrame:
        rows: pd.DataFrame = self.used.iloc[self._cells.get((variant, case), [])]
        return rows

    @cached_property
    def _cells(self) -> Mapping[Any, Any]:
        """Row positions in `used`, by variant and case."""
        return self.used.groupby(["variant", "case"]).indices

    def visits(self, variant: str, case: str, metric: str) -> pd.Series:
        try:
            found: pd.Series = self.by_visit.loc[variant, case, metric]
        except KeyError:
            raise self._absence(variant, case, metric) from None
        share = slowed_share(self._rows_of(variant, case)["throttle"])
        if share > MAX_SLOWED_SHARE:
            raise NotTested(f"{variant} was slowed down in {share:.0%} of its samples")
        return found

    def _absence(self, variant: str, case: str, what: str) -> NotTested:
        """Why there are no fresh, checked samples with `what`."""
        rows = self._rows_of(variant, case)
        if rows.empty:
            return Missing(f"{variant} has not been measured in this case")
        first = rows.iloc[0]
        if first["status"] == "skipped":
            return NotTested(f"{variant} was skipped: {first['reason']}")
        if rows["stale"].all():
            return NotTested(f"measured with other code: {variant}")
        if first["status"] == "failed":
            return NotTested(f"{variant} failed its check: {first['reason']}")
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
        runs = medians_by_run(by_visit)
        figure = self._based_on(Figure(*estimate([*runs.values()], kind)), runs)
        by_host = self._by_host(runs)
        if len(by_host) < MIN_RUNS:
            return figure
        return replace(figure, mean=mean_estimate(by_host, kind)[1:])

    def over_hosts(self, by_visit: pd.Series, kind: Kind = TIME) -> Figure:
        runs = medians_by_run(by_visit)
        by_host = self._by_host(runs)
        if len(by_host) < MIN_RUNS:
            needed = f"a mean over hosts needs {MIN_RUNS} of them, got {len(by_host)}"
            raise NotTested(needed, runs)
        return self._based_on(Figure(*mean_estimate(by_host, kind)), runs)

    def _by_host(self, runs: Rounds) -> list[float]:
        """The median over its runs of each host, which is the unit of a mean over hosts."""
        found: dict[str, list[float]] = {}
        for run, rounds in runs.items():
            found.setdefault(self._hosts[run], []).append(median(rounds))
        return [median(found[host]) for host in sorted(found)]

    def _based_on(self, figure: Figure, runs: Rounds) -> Figure:
        """`figure` with its runs and hosts."""
        by_run = tuple(map(median, runs.values()))
        return replace(figure, by_run=by_run, runs=frozenset(runs), hosts=self.hosts_of(runs))

    def hosts_of(self, runs: Iterable[str]) -> int:
        """Number of hosts of `runs`."""
        return len({self._hosts[run] for run in runs})

    @cached_property
    def _hosts(self) -> Mapping[str, str]:
        """Host of each run."""
        return dict(zip(self.samples["run"], self.samples["host"], strict=True))

    def payload(self, variant: str, case: str) -> int:
        payload = self.study.payloads[variant, case]
        if not payload:
            raise NotTested(f"{variant} delivers no bytes")
        return payload

    @cached_property
    def statements(self) -> list[Statement]:
        rows = self.published[list(Statement._fields)]
        rows = rows.assign(rate=rows["rate"] * 1e9)
        return [Statement(*row) for row in rows.itertuples(index=False, name=None)]

    def published_seconds(self, variant: str, case: str, metric: str = "") -> float:
        of, seconds = self._printed.get((variant, case), ("", math.nan))
        return seconds if metric in ("", of) else math.nan

    @cached_property
    def _printed(self) -> Mapping[tuple[str, str], tuple[str, float]]:
        """Metric and published time by variant and case. With several sources, the first counts."""
        rows = best_statement(self.published).drop_duplicates(["variant", "case"])
        return {
            (row["variant"], row["case"]): (row["metric"], float(row["seconds"]))
            for row in rows.to_dict("records")
        }

    def predicted_seconds(self, variant: str, case: str, metric: str) -> float:
        rows = _of(self.model, variant, case, metric or self.study.time_metrics[0])
        rows = rows.dropna(subset="predicted")
        if rows.empty:
            raise Missing("no model prediction")
        return float(rows.iloc[0]["predicted"])

    def count(self, variant: str, case: str, counter: str) -> float:
        rows = _of(self.counted, variant, case, counter)
        if rows.empty:
            raise Missing(f"no fresh profile of {variant} has {counter} in this case")
        return float(rows.iloc[0]["counted"])

    def check(self, variant: str, case: str) -> Check:
        rows = self._rows_of(variant, case)
        rows = rows[~rows["stale"].astype(bool)]
        failed = rows.loc[rows["status"] == "failed", "reason"]
        checked = rows[rows["status"] == "ok"]
        if failed.empty and (checked.empty or not checked["verified"].all()):
            raise self._absence(variant, case, "check")
        rounds = checked[["run", "round"]].drop_duplicates()
        return Check(frozenset(rows["run"]), len(rounds), *failed.astype(str).iloc[:1])


def _of(table: pd.DataFrame, variant: str, case: str, metric: str) -> pd.DataFrame:
    """The rows of a metric of a variant in a case."""
    is_of = (table["variant"] == variant) & (table["case"] == case) & (table["metric"] == metric)
    return table[is_of]


def medians_by_run(by_visit: pd.Series) -> Rounds:
    """Medians of the rounds, by run."""
    by_round = by_visit.groupby(level=[0, 1]).median()
    runs: dict[str, list[float]] = {}
    for (run, _), value in zip(by_round.index.tolist(), by_round.tolist(), strict=True):
        runs.setdefault(run, []).append(value)
    return runs
