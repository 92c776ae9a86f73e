"""Results of one study on one machine: the evidence for its claims."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis.base.statistics import COUNT, MIN_RUNS, TIME, Kind, estimate, mean_estimate
from analysis.results.disturbance import slowed_share
from analysis.results.store.published import best_statement
from analysis.results.tables.medians import (
    Rounds,
    by_visit,
    chosen,
    chosen_and_fresh,
    medians_of,
    rounds_by_run,
)
from analysis.study import Study
from analysis.study.claims import Claim
from analysis.study.claims.evidence import Check, Statement
from analysis.study.claims.verdicts import Figure, Missing, NotTested

MAX_SLOWED_SHARE: Final = 0.5
"""Maximum share of a cell's samples with a slowed-down GPU for a claim to be tested on the cell."""


@dataclass(frozen=True)
class MachineResults:
    """`Evidence` for the claims of one study on one machine, of which all tables are: `samples` as
    collected, `counted` by `counts`, `model` the predictions, `published` the published figures.
    """

    study: Study
    samples: pd.DataFrame
    published: pd.DataFrame
    model: pd.DataFrame
    counted: pd.DataFrame
    _parts: dict[frozenset[str], MachineResults] = field(default_factory=dict)

    def judging(self, claim: Claim) -> MachineResults:
        """Evidence of only the runs and profiles that recorded the bounds of the claim."""
        runs = self._recorded
        others = frozenset(runs.loc[~_records(runs, claim), "run"])
        if others and others not in self._parts:  # many claims are judged by the same runs
            kept = self.samples[~self.samples["run"].isin(others)]
            self._parts[others] = replace(self, samples=kept, _parts={})
        evidence = self._parts[others] if others else self
        if not claim.on_counters:
            return evidence
        return replace(evidence, counted=self.counted[_records(self.counted, claim)])

    def has(self, claim: Claim) -> bool:
        """Whether each variant of the claim has been measured, or profiled for a claim on counters,
        with its current code."""
        return {*claim.variants} <= ({*self.counted["variant"]} if claim.on_counters else self._run)

    @cached_property
    def _recorded(self) -> pd.DataFrame:
        """Each variant and run, with the digests of current claims that the run records."""
        return self.samples.drop_duplicates(["variant", "run"])[["variant", "run", "named"]]

    @cached_property
    def _run(self) -> frozenset[str]:
        """The variants that were run with their current code."""
        is_run = (self._used["status"] != "skipped") & ~self._used["stale"].astype(bool)
        return frozenset(self._used.loc[is_run, "variant"])

    @cached_property
    def _used(self) -> pd.DataFrame:
        """Samples of all fresh runs, as used by the summary."""
        return chosen(self.samples)

    @cached_property
    def _by_visit(self) -> pd.Series:
        """Medians of fresh, checked samples by variant, case, metric, run, round and visit."""
        good = chosen_and_fresh(self.samples)
        medians = by_visit(good[good["verified"] == 1], {self.study.name: self.study})
        return medians.droplevel(["machine", "study", "unit", "host"])

    @cached_property
    def _rows(self) -> Mapping[Any, Any]:
        """Positions of rows in `_used`, by variant and case."""
        return self._used.groupby(["variant", "case"]).indices

    def _rows_of(self, variant: str, case: str) -> pd.DataFrame:
        rows: pd.DataFrame = self._used.iloc[self._rows.get((variant, case), [])]
        return rows

    @cached_property
    def _hosts(self) -> Mapping[str, str]:
        """Host of each run."""
        return dict(zip(self.samples["run"], self.samples["host"], strict=True))

    def hosts_of(self, runs: Iterable[str]) -> int:
        """Number of hosts of `runs`."""
        return len({self._hosts[run] for run in runs})

    def visits(self, variant: str, case: str, metric: str) -> pd.Series:
        try:
            found: pd.Series = self._by_visit.loc[variant, case, metric]
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
        runs, by_host = self._runs_and_hosts(by_visit)
        mean = mean_estimate(by_host, kind)[1:] if len(by_host) >= MIN_RUNS else (math.nan,) * 2
        return self._figure(Figure(*estimate([*runs.values()], kind), mean=mean), runs)

    def over_hosts(self, by_visit: pd.Series, kind: Kind = TIME) -> Figure:
        runs, by_host = self._runs_and_hosts(by_visit)
        if len(by_host) < MIN_RUNS:
            needed = f"a mean over hosts needs {MIN_RUNS} of them, got {len(by_host)}"
            raise NotTested(needed, runs)
        return self._figure(Figure(*mean_estimate(by_host, kind)), runs)

    def _runs_and_hosts(self, by_visit: pd.Series) -> tuple[Rounds, list[float]]:
        """The medians of the rounds of each run, and the median over its runs of each host."""
        rounds = by_visit.groupby(["run", "round"]).median()
        runs = rounds_by_run(rounds).get((), {})
        of_host: dict[str, list[float]] = {}
        for run, one in zip(runs, medians_of(runs), strict=True):
            of_host.setdefault(self._hosts[run], []).append(one)
        return runs, [median(of_host[host]) for host in sorted(of_host)]

    def _figure(self, figure: Figure, runs: Rounds) -> Figure:
        """`figure` with its runs and hosts."""
        return replace(
            figure,
            by_run=tuple(medians_of(runs)),
            runs=frozenset(runs),
            hosts=self.hosts_of(runs),
        )

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
        found = _value(self.model, "predicted", variant, case, metric or self.study.time_metrics[0])
        if found is None:
            raise Missing("no model prediction")
        return found

    def count(self, variant: str, case: str, counter: str) -> float:
        found = _value(self.counted, "counted", variant, case, counter)
        if found is None:
            raise Missing(f"no fresh profile of {variant} has {counter} in this case")
        return found

    def check(self, variant: str, case: str) -> Check:
        rows = self._rows_of(variant, case)
        rows = rows[~rows["stale"].astype(bool)]
        failed = rows.loc[rows["status"] == "failed", "reason"]
        checked = rows[rows["status"] == "ok"]
        if failed.empty and (checked.empty or not checked["verified"].all()):
            raise self._absence(variant, case, "check")
        rounds = checked[["run", "round"]].drop_duplicates()
        return Check(frozenset(rows["run"]), len(rounds), *failed.astype(str).iloc[:1])


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
