"""The results of one study on one machine, as the evidence that claims are tested by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from statistics import median
from typing import Any, Final

import pandas as pd

from analysis.base.statistics import MIN_RUNS, Estimate, estimate, mean_estimate
from analysis.results.modes import count_modes
from analysis.results.store.collect import chosen, fresh, visits
from analysis.results.store.folders import PUBLISHED
from analysis.results.store.published import best_statement
from analysis.results.store.throttling import slowed_share
from analysis.study import Study
from analysis.study.claims import Claim
from analysis.study.claims.evidence import Check, Statement
from analysis.study.claims.verdicts import Figure, NotTested

MOST_SLOWED: Final = 0.5
"""Where the GPU was slowed down in a larger share of a cell's samples, no claim is tested on it."""


@dataclass(frozen=True)
class MachineResults:
    """Evidence of one study on one machine, by which claims are tested.

    `samples` are its rows of the collected samples, `counted` its rows of `fresh_counts`;
    `published` and `model` the study's rows of those tables, the latter on this machine.
    """

    study: Study
    samples: pd.DataFrame
    published: pd.DataFrame
    model: pd.DataFrame
    counted: pd.DataFrame

    @cached_property
    def statements(self) -> list[Statement]:
        names = list(Statement._fields)
        rows = self.published[names].assign(rate=self.published["rate"] * 1e9)
        return [Statement(*row) for row in rows.itertuples(index=False, name=None)]

    @cached_property
    def by_visit(self) -> pd.Series:
        """Median of the fresh, checked samples by variant, case, metric, run, round and visit."""
        good = fresh(self.used)
        good = good[good["verified"] == 1]
        good = good.assign(visit=visits(good, {self.study.name: self.study}))
        keys = ["variant", "case", "metric", "run", "round", "visit"]
        medians: pd.Series = good.groupby(keys)["value"].median()
        return medians

    @cached_property
    def runs(self) -> frozenset[str]:
        return frozenset(self.samples["run"])

    def judging(self, claim: Claim) -> MachineResults:
        """The same of the runs and profiles that name the bounds of the claim only."""
        needed = claim.bounds_by_variant
        others = {
            run
            for variant, digests in needed.items()
            for run, named in self._named.get(variant, {}).items()
            if not digests <= named
        }
        found = self._of_runs(self.runs - others)
        if not claim.on_counters:
            return found
        names = [
            needed.get(variant, frozenset()) <= named
            for variant, named in zip(self.counted["variant"], self.counted["named"], strict=True)
        ]
        return replace(found, counted=self.counted[names])

    @cached_property
    def _of_runs(self) -> Callable[[frozenset[str]], MachineResults]:
        """The same of some runs only. Kept, as many claims are judged by the same runs."""

        @cache
        def of_runs(runs: frozenset[str]) -> MachineResults:
            if runs == self.runs:
                return self
            return replace(self, samples=self.samples[self.samples["run"].isin(runs)])

        return of_runs

    @cached_property
    def _named(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        """By variant and run, the digests of today's claims that its provenance names."""
        once = self.samples.drop_duplicates(["variant", "run"])
        found: dict[str, dict[str, frozenset[str]]] = {}
        for variant, run, named in zip(once["variant"], once["run"], once["named"], strict=True):
            found.setdefault(variant, {})[run] = named
        return found

    def runs_of(self, claim: Claim) -> frozenset[str]:
        """The fresh runs that measured all that a comparison of the claim takes."""
        nothing: frozenset[str] = frozenset()
        found = (
            frozenset.intersection(
                *(
                    self._runs_of_cells.get((variant, case), nothing)
                    for variant in test.variants
                    for case in test.cases
                )
            )
            for test in claim.tests
            if test.variants and not test.on_counters
        )
        return nothing.union(*found)

    @cached_property
    def _runs_of_cells(self) -> Mapping[tuple[str, str], frozenset[str]]:
        """By variant and case, the runs with fresh, checked samples."""
        good = fresh(self.used)
        good = good[good["verified"] == 1].drop_duplicates(["variant", "case", "run"])
        return {
            (str(variant), str(case)): frozenset(of_cell["run"])
            for (variant, case), of_cell in good.groupby(["variant", "case"])
        }

    def has(self, claim: Claim) -> bool:
        """Whether each variant of the claim has been measured by the code of today, or profiled
        where the claim takes that."""
        known = frozenset(self.counted["variant"]) if claim.on_counters else self.measured
        return known.issuperset(claim.variants)

    @cached_property
    def measured(self) -> frozenset[str]:
        is_measured = (self.used["status"] != "skipped") & ~self.used["stale"].astype(bool)
        return frozenset(self.used.loc[is_measured, "variant"])

    @cached_property
    def used(self) -> pd.DataFrame:
        """The samples that a summary uses, of all fresh runs."""
        return chosen(self.samples)

    def _rows_of(self, variant: str, case: str) -> pd.DataFrame:
        rows: pd.DataFrame = self.used.iloc[self._cells.get((variant, case), [])]
        return rows

    @cached_property
    def _cells(self) -> Mapping[Any, Any]:
        """The places of the rows of each variant and case."""
        return self.used.groupby(["variant", "case"]).indices

    def visits(self, variant: str, case: str, metric: str) -> pd.Series:
        try:
            found: pd.Series = self.by_visit.loc[variant, case, metric]
        except KeyError:
            raise NotTested(self._absence(variant, case, metric)) from None
        share = slowed_share(self._rows_of(variant, case)["throttle"])
        if share > MOST_SLOWED:
            raise NotTested(f"{variant} was slowed down in {share:.0%} of its samples")
        return found

    def _absence(self, variant: str, case: str, what: str) -> str:
        """Why there are no fresh, checked samples with `what`."""
        rows = self._rows_of(variant, case)
        if rows.empty:
            return f"{variant} has not been measured in this case"
        first = rows.iloc[0]
        if first["status"] == "skipped":
            return f"{variant} was skipped: {first['reason']}"
        if rows["stale"].all():
            return f"the result of {variant} is stale"
        if first["status"] == "failed":
            return f"{variant} failed its check: {first['reason']}"
        if not rows["verified"].all():
            return f"the output of {variant} was not checked"
        return f"{variant} has no {what}"

    def times(self, variants: Sequence[str], case: str, metric: str) -> list[pd.Series]:
        compared = [self.study.variant(name) for name in variants]
        reasons = []
        for name in [metric] if metric else self.study.metrics_for(*compared):
            try:
                return [self.visits(variant, case, name) for variant in variants]
            except NotTested as reason:
                reasons.append(reason)
        raise reasons[0] if reasons else NotTested("no metric compares the two")

    def over_rounds(self, by_visit: pd.Series) -> Figure:
        runs = runs_of(by_visit)
        figure = Figure(*estimate(runs))
        if len(runs) < MIN_RUNS:
            return figure
        _, low, high = _mean(runs)
        return replace(figure, mean=(low, high))

    def over_runs(self, by_visit: pd.Series) -> Figure:
        runs = runs_of(by_visit)
        if len(runs) < MIN_RUNS:
            raise NotTested(f"a mean over runs needs {MIN_RUNS} of them, got {len(runs)}")
        return Figure(*_mean(runs))

    def payload(self, variant: str, case: str) -> int:
        payload = self.study.payloads[variant, case]
        if not payload:
            raise NotTested(f"{variant} delivers no bytes")
        return payload

    def published_seconds(self, variant: str, case: str, metric: str = "") -> float:
        rows = self._printed
        rows = rows[(rows["variant"] == variant) & (rows["case"] == case)]
        # Of several sources, the first one's.
        if rows.empty or metric not in ("", rows.iloc[0]["metric"]):
            return math.nan
        return float(rows.iloc[0]["seconds"])

    @cached_property
    def _printed(self) -> pd.DataFrame:
        return best_statement(self.published)

    def predicted_seconds(self, variant: str, case: str, metric: str) -> float:
        rows = self.model[
            (self.model["variant"] == variant)
            & (self.model["case"] == case)
            & (self.model["metric"] == (metric or self.study.time_metrics[0]))
        ].dropna(subset="predicted")
        if rows.empty:
            raise NotTested("no model prediction")
        return float(rows.iloc[0]["predicted"])

    def count(self, variant: str, case: str, counter: str) -> float:
        rows = self.counted[
            (self.counted["variant"] == variant)
            & (self.counted["case"] == case)
            & (self.counted["metric"] == counter)
        ]
        if rows.empty:
            raise NotTested(f"no fresh profile of {variant} has {counter} in this case")
        return float(rows.iloc[0]["counted"])

    def check(self, variant: str, case: str) -> Check:
        rows = self._rows_of(variant, case)
        rows = rows[~rows["stale"].astype(bool)]
        failed = rows.loc[rows["status"] == "failed", "reason"]
        checked = rows[rows["status"] == "ok"]
        if failed.empty and (checked.empty or not checked["verified"].all()):
            raise NotTested(self._absence(variant, case, "check"))
        rounds = checked[["run", "round"]].drop_duplicates()
        return Check(len(rounds), *failed.astype(str).iloc[:1])


def evidence_by_machine(
    study: Study,
    published: pd.DataFrame,
    samples: pd.DataFrame,
    model: pd.DataFrame,
    counted: pd.DataFrame,
) -> dict[str, MachineResults]:
    """Evidence of the study on each machine that has measured it. Under PUBLISHED, it is only
    what has been printed.

    All tables are the study's rows of those that `MachineResults` has.
    """
    known = {PUBLISHED: MachineResults(study, samples[:0], published, model[:0], counted[:0])}
    for machine, measured in samples.groupby("machine", sort=True):
        of_machine = (table[table["machine"] == machine] for table in (model, counted))
        known[str(machine)] = MachineResults(study, measured, published, *of_machine)
    return known


def _mean(runs: Sequence[Sequence[float]]) -> Estimate:
    """The mean over runs of each run's median over rounds."""
    return mean_estimate([median(rounds) for rounds in runs])


def runs_of(by_visit: pd.Series) -> list[list[float]]:
    """By run, the medians of its rounds. NotTested where no one figure stands for them."""
    by_round = by_visit.groupby(["run", "round"]).median()
    runs = [list(rounds) for _, rounds in by_round.groupby("run")]
    if (modes := count_modes(runs)) > 1:
        raise NotTested(f"the rounds have {modes} modes: no one figure stands for them")
    return runs
