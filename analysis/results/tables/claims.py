"""build/claims.csv and build/claim_parts.csv: what the results say of every claim, by machine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis.base.statistics import MIN_RUNS, TIME, Estimate, Kind, estimate, mean_estimate
from analysis.results.disturbance import SLOWDOWNS, reasons
from analysis.results.store.published import best_statement
from analysis.results.store.runs import PUBLISHED
from analysis.results.tables import rows
from analysis.results.tables.rows import ClaimPartRow, ClaimRow
from analysis.results.tables.summary import Rounds, by_visit, chosen, medians_of, rounds_by_run
from analysis.study import Study
from analysis.study.claims import Claim, verdicts
from analysis.study.claims.verdicts import NOT_TESTED, Figure, Missing, NotTested, Outcome

MAX_SLOWED_SHARE: Final = 0.5
"""Maximum share of a cell's samples with a slowed-down GPU for a claim to be tested on the cell."""


def claim_tables(
    samples: pd.DataFrame,
    studies: Mapping[str, Study],
    published: Mapping[str, pd.DataFrame],
    model: pd.DataFrame,
    counted: pd.DataFrame,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row for each claim and machine with results of its study, and one for each comparison of
    claims that have several, the deciding ones first.

    `samples` and `published` are as `collect` gives them, `model` is the link model's table of
    predictions, `counted` that of `counts`. A claim that published rows decide alone has one row,
    its machine `published`.
    """
    counted = counted[~counted["stale"].astype(bool)]
    claims: list[ClaimRow] = []
    parts: list[ClaimPartRow] = []
    for study in (study for study in studies.values() if study.claims):
        tables = [table[table["study"] == study.name] for table in (samples, model, counted)]
        for machine in (PUBLISHED, *sorted(tables[0]["machine"].unique())):
            here = [table[table["machine"] == machine] for table in tables]
            known = MachineResults(study, here[0], published[study.name], *here[1:])
            for claim in study.claims:
                if claim.on_rows == (machine == PUBLISHED):
                    row, of_row = _judged(known, claim, machine)
                    claims.append(row)
                    parts += of_row
    return rows.table_of("claims", claims), rows.table_of("claim_parts", parts)


def _judged(
    known: MachineResults, claim: Claim, machine: str
) -> tuple[ClaimRow, list[ClaimPartRow]]:
    """The row of the claim and those of its parts; of a single comparison, there are none. Only
    runs and profiles that record a claim's bounds judge it; without any, all `known` ones do."""
    published = math.nan if claim.published is None else claim.published
    none = Figure(math.nan, math.nan, math.nan, published)
    row: dict[str, Any] = {"study": known.study.name, "claim": claim.id, "machine": machine}
    row |= {"unit": "", "case": "", **_figures(none, none)}
    if not claim.tests:
        return ClaimRow(**row, verdict=NOT_TESTED, reason=claim.untested), []
    judges, bound = known, ""
    if machine != PUBLISHED and known.has(claim):
        bound = verdicts.AFTERWARDS
        if (naming := known.judging(claim)).has(claim):
            judges, bound = naming, verdicts.BEFORE
    of_all = [test.judge(known, claim.published) for test in claim.tests]
    outcomes = of_all
    if judges is not known:
        outcomes = [test.judge(judges, claim.published) for test in claim.tests]
    parts = []
    for number, (test, shown, outcome) in enumerate(
        zip(claim.tests, of_all, outcomes, strict=True)
    ):
        part = row | _figures(shown.figure or none, outcome.figure or none)
        part |= {"verdict": outcome.verdict, "reason": outcome.reason, "case": test.case}
        part |= {"unit": test.figure_unit}
        parts.append(ClaimPartRow(**part, part=number + 1, comparison=test.title))
    if len(parts) == 1:
        row = part
        parts.clear()
    else:
        # No one figure speaks for several comparisons: each has a row, and its words in the reason.
        # Those that do not hold come first, then those with the least room to the bound.
        order = (verdicts.FAILS, NOT_TESTED, verdicts.HOLDS)
        rooms = [
            (order.index(outcome.verdict), test.room(outcome.figure) if outcome.figure else 0.0)
            for test, outcome in zip(claim.tests, outcomes, strict=True)
        ]
        parts.sort(key=lambda part: rooms[part.part - 1])
        words = [part.sentence(with_case=claim.in_several_cases) for part in parts]
        verdict = verdicts.together(outcome.verdict for outcome in outcomes)
        row |= {"verdict": verdict, "reason": "; ".join(words)}
    on_average = verdicts.together(outcome.on_average or outcome.verdict for outcome in outcomes)
    if on_average != row["verdict"]:  # else the means decide no more than the figures
        row["on_average"] = on_average
    if bound:
        row["runs"], row["hosts"] = known.runs_and_hosts(of_all)
    if bound == verdicts.BEFORE:
        row["judging"], row["judging_hosts"] = known.runs_and_hosts(outcomes)
    return ClaimRow(**row, bound=bound), parts


def _figures(of_all: Figure, decisive: Figure) -> dict[str, Any]:
    """The columns of figures of both tables: of all runs, and of those that judge."""
    figures = {"published": of_all.published, "by_run": rows.runs_text(of_all.by_run)}
    figures |= {"measured": of_all.value, "ci_low": of_all.low, "ci_high": of_all.high}
    judged = {"judged": decisive.value, "judged_low": decisive.low, "judged_high": decisive.high}
    return {**figures, **judged, "hosts": of_all.hosts}


@dataclass
class MachineResults:
    """`Evidence` for the claims of one study on one machine, from tables as of `claim_tables`."""

    study: Study
    samples: pd.DataFrame
    published: pd.DataFrame
    model: pd.DataFrame
    counted: pd.DataFrame

    def __post_init__(self) -> None:
        samples = self.samples
        self._used = used = chosen(samples)
        is_fresh = ~used["stale"].astype(bool)
        good = used[is_fresh & (used["status"] == "ok") & (used["verified"] == 1)]
        medians = by_visit(good, {self.study.name: self.study})
        self._by_visit = medians.droplevel(["machine", "study", "unit", "host"])
        self._visits = self._by_visit.groupby(level=["variant", "case", "metric"]).indices
        printed = best_statement(self.published)[["variant", "case", "metric", "seconds"]]
        self._printed: dict[tuple[str, str], tuple[str, float]] = {}
        for variant, case, metric, seconds in printed.itertuples(index=False):
            self._printed.setdefault((variant, case), (metric, float(seconds)))
        self._places = used.groupby(["variant", "case"]).indices
        slowed = [row for row in used["throttle"].unique() if SLOWDOWNS & reasons([row])]
        self._is_slowed = used["throttle"].isin(slowed).to_numpy()
        self._run = {*used.loc[is_fresh & (used["status"] != "skipped"), "variant"]}
        self._recorded = samples.drop_duplicates(["variant", "run"])[["variant", "run", "named"]]
        self._hosts = samples.drop_duplicates("run").set_index("run")["host"].to_dict()
        self._without: dict[frozenset[str], MachineResults] = {frozenset(): self}

    def judging(self, claim: Claim) -> MachineResults:
        """Evidence of only the runs and profiles that recorded the bounds of the claim."""
        others = frozenset(self._recorded.loc[~_records(self._recorded, claim), "run"])
        is_judging = _records(self.counted, claim)
        if not others and is_judging.all():
            return self
        if others not in self._without:  # many claims are judged by the same runs
            kept = self.samples[~self.samples["run"].isin(others)]
            self._without[others] = replace(self, samples=kept)
        evidence = copy(self._without[others])
        evidence.counted = self.counted[is_judging]
        return evidence

    def has(self, claim: Claim) -> bool:
        """Whether each variant of the claim has been measured, or profiled for a claim on counters,
        with its current code."""
        known = {*self.counted["variant"]} if claim.on_counters else self._run
        return {*claim.variants} <= known

    def runs_and_hosts(self, outcomes: Iterable[Outcome]) -> tuple[int, int]:
        """The number of runs that measured any of `outcomes`, and that of their hosts."""
        runs = frozenset[str]().union(*(outcome.runs for outcome in outcomes))
        return len(runs), len({self._hosts[run] for run in runs})

    def _rows_of(self, variant: str, case: str) -> pd.DataFrame:
        rows: pd.DataFrame = self._used.iloc[self._places.get((variant, case), [])]
        return rows

    def visits(self, variant: str, case: str, metric: str) -> pd.Series:
        if (variant, case, metric) not in self._visits:
            raise self._absence(variant, case, metric)
        share = self._is_slowed[self._places[variant, case]].mean()
        if share > MAX_SLOWED_SHARE:
            raise NotTested(f"{variant} was slowed down in {share:.0%} of its samples")
        found = self._by_visit.iloc[self._visits[variant, case, metric]]
        return found.droplevel(["variant", "case", "metric"])

    def _absence(self, variant: str, case: str, what: str) -> NotTested:
        """Why there are no fresh, checked samples with `what`."""
        rows = self._rows_of(variant, case)
        if rows.empty:  # the full grid alone may have this case
            of_variant = self._used[self._used["variant"] == variant]
            rows = of_variant if of_variant["status"].eq("skipped").all() else rows
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

    def over_rounds(self, by_visit: pd.Series, kind: Kind = TIME) -> Figure:
        runs, by_host = self._by_run_and_host(by_visit)
        figure = _figure(estimate([*runs.values()], kind), runs, by_host)
        has_mean = len(by_host) >= MIN_RUNS
        return replace(figure, mean=mean_estimate(by_host, kind)[1:]) if has_mean else figure

    def over_hosts(self, by_visit: pd.Series, kind: Kind = TIME) -> Figure:
        runs, by_host = self._by_run_and_host(by_visit)
        if len(by_host) < MIN_RUNS:
            needed = f"a mean over hosts needs {MIN_RUNS} of them, got {len(by_host)}"
            raise NotTested(needed, runs)
        return _figure(mean_estimate(by_host, kind), runs, by_host)

    def _by_run_and_host(self, by_visit: pd.Series) -> tuple[Rounds, list[float]]:
        """The medians of the rounds of each run, and the median over its runs of each host."""
        runs = rounds_by_run(by_visit, []).get((), {})
        by_host: dict[str, list[float]] = {}
        for run, of_run in zip(runs, medians_of(runs), strict=True):
            by_host.setdefault(self._hosts[run], []).append(of_run)
        return runs, [median(by_host[host]) for host in sorted(by_host)]

    def published_seconds(self, variant: str, case: str, metric: str = "") -> float:
        """As in the first of several sources."""
        printed, seconds = self._printed.get((variant, case), ("", math.nan))
        return seconds if metric in ("", printed) else math.nan

    def predicted_seconds(self, variant: str, case: str, metric: str) -> float:
        key = variant, case, metric or self.study.time_metrics[0]
        return _value(self.model, "predicted", key, "no model prediction")

    def count(self, variant: str, case: str, counter: str) -> float:
        otherwise = f"no fresh profile of {variant} has {counter} in this case"
        return _value(self.counted, "counted", (variant, case, counter), otherwise)

    def check(self, variant: str, case: str) -> Outcome:
        rows = self._rows_of(variant, case)
        rows = rows[~rows["stale"].astype(bool)]
        failed = rows.loc[rows["status"] == "failed", "reason"]
        checked = rows[rows["status"] == "ok"]
        if failed.empty and (checked.empty or not checked["verified"].all()):
            raise self._absence(variant, case, "check")
        runs = frozenset(rows["run"])
        if not failed.empty:
            return Outcome(verdicts.FAILS, f"failed its check: {failed.iloc[0]}", runs=runs)
        rounds = len(checked[["run", "round"]].drop_duplicates())
        return Outcome(verdicts.HOLDS, f"passed its check in {rounds} rounds", runs=runs)


def _figure(value: Estimate, runs: Rounds, by_host: Sequence[float]) -> Figure:
    by_run = tuple(medians_of(runs))
    return Figure(*value, by_run=by_run, runs=frozenset(runs), hosts=len(by_host))


def _records(rows: pd.DataFrame, claim: Claim) -> Any:
    """Mask of the `rows` whose run or profile, `named`, records the bounds of the claim
    for the row's variant."""
    needed, none = claim.bounds_by_variant, frozenset[str]()
    pairs = zip(rows["variant"], rows["named"], strict=True)
    return np.array([needed.get(variant, none) <= named for variant, named in pairs], bool)


def _value(table: pd.DataFrame, column: str, key: tuple[str, str, str], otherwise: str) -> float:
    """The first known value of a variant, case and metric; Missing if there is none."""
    is_of = (table[["variant", "case", "metric"]] == [*key]).all(axis=1)
    for value in table.loc[is_of, column].dropna():
        return float(value)
    raise Missing(otherwise)
