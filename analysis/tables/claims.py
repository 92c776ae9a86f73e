"""build/claims.csv and build/claim_parts.csv: what the results say of every claim, by machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from statistics import median
from typing import Any, Final

import pandas as pd

from analysis.claims import Claim
from analysis.claims.comparison import Comparison
from analysis.claims.evidence import Check, Statement
from analysis.claims.verdicts import (
    AFTERWARDS,
    BEFORE,
    FAILS,
    HOLDS,
    NOT_TESTED,
    Figure,
    NotTested,
    Outcome,
    together,
)
from analysis.measure.throttling import slowed_share
from analysis.modes import count_modes
from analysis.statistics import FEWEST_RUNS, estimate, mean_estimate
from analysis.store.collect import chosen, visits
from analysis.store.folders import PUBLISHED
from analysis.store.published import best_statement
from analysis.study import Study
from analysis.tables.counters import COUNT_COLUMNS
from analysis.tables.rows import ClaimPartRow, ClaimRow, columns

CLAIM_COLUMNS: Final = columns(ClaimRow)
PART_COLUMNS: Final = columns(ClaimPartRow)
UNCOUNTED: Final = pd.DataFrame(columns=COUNT_COLUMNS)

MOST: Final = 0.5
"""Where the GPU was slowed down in a larger share of a cell's samples, no claim is tested on it."""

Columns = dict[str, Any]
"""Some of the columns of a row."""


@dataclass(frozen=True)
class ClaimTables:
    """In CLAIM_COLUMNS a row a claim, and in PART_COLUMNS a row a comparison of each claim that is
    made up of several, those first that decide."""

    claims: pd.DataFrame
    parts: pd.DataFrame


@dataclass(frozen=True)
class MachineResults:
    """What is known of one study on one machine: the evidence that claims are tested by.

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
        is_fresh = (self.used["status"] == "ok") & ~self.used["stale"].astype(bool)
        good = self.used[is_fresh & (self.used["verified"] == 1)]
        good = good.assign(visit=visits(good, {self.study.name: self.study}))
        keys = ["variant", "case", "metric", "run", "round", "visit"]
        medians: pd.Series = good.groupby(keys)["value"].median()
        return medians

    @cached_property
    def runs(self) -> frozenset[str]:
        return frozenset(self.samples["run"])

    def of_runs(self, runs: frozenset[str]) -> MachineResults:
        """The same of these `runs` only."""
        if runs == self.runs:
            return self
        return replace(self, samples=self.samples[self.samples["run"].isin(runs)])

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
        if share > MOST:
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
        return Figure(*estimate(runs_of(by_visit)))

    def over_runs(self, by_visit: pd.Series) -> Figure:
        runs = runs_of(by_visit)
        if len(runs) < FEWEST_RUNS:
            raise NotTested(
                f"a mean over runs takes {FEWEST_RUNS} of them, and there are {len(runs)}"
            )
        return Figure(*mean_estimate([median(rounds) for rounds in runs]))

    def payload(self, variant: str, case: str) -> int:
        cases = {one.id: one.payload_bytes for one in self.study.variant(variant).cases}
        if not cases[case]:
            raise NotTested(f"{variant} delivers no bytes")
        return cases[case]

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
        return Check(int(checked["round"].nunique()), *failed.astype(str).iloc[:1])


def claim_tables(
    samples: pd.DataFrame,
    studies: Mapping[str, Study],
    published: Mapping[str, pd.DataFrame],
    model: pd.DataFrame,
    counted: pd.DataFrame = UNCOUNTED,
) -> ClaimTables:
    """A row a claim and machine that has anything of its study, and the parts of those claims.

    `samples` and `published` are as `collect` gives them, `model` is the link model's table of
    predictions, `counted` that of `fresh_counts`. A claim that published rows decide alone has one
    row, its machine `published`.
    """
    claims: list[ClaimRow] = []
    parts: list[ClaimPartRow] = []
    for study in studies.values():
        if not study.claims:
            continue
        measured = samples[samples["study"] == study.name]
        predicted = model[model["study"] == study.name]
        printed = published[study.name]
        evidence = {
            PUBLISHED: MachineResults(study, measured[:0], printed, predicted[:0], counted[:0])
        }
        profiled = counted[counted["study"] == study.name]
        for machine, here in measured.groupby("machine", sort=True):
            on_machine = predicted[predicted["machine"] == machine]
            counts = profiled[profiled["machine"] == machine]
            evidence[str(machine)] = MachineResults(study, here, printed, on_machine, counts)
        for machine, known in evidence.items():
            for row, of_row in _verdicts(known, machine):
                claims.append(row)
                parts += of_row
    return ClaimTables(
        claims=pd.DataFrame(map(asdict, claims), columns=CLAIM_COLUMNS),
        parts=pd.DataFrame(map(asdict, parts), columns=PART_COLUMNS),
    )


def _verdicts(known: MachineResults, machine: str) -> Iterator[tuple[ClaimRow, list[ClaimPartRow]]]:
    """The row of each claim that is judged on the machine, and those of its parts.

    Only runs and profiles that began after a claim's bounds were set judge it; all that are `known`
    where there are no such.
    """
    of_runs = cache(known.of_runs)  # bounds are set at many moments, and few runs lie between
    for claim in known.study.claims:
        if claim.on_rows != (machine == PUBLISHED):
            continue
        evidence, bound = known, ""
        if claim.tests and machine != PUBLISHED and known.has(claim):
            bound = AFTERWARDS
            if claim.bounds:
                set_at = claim.bounds.set_at
                younger = of_runs(frozenset(run for run in known.runs if run > set_at))
                if claim.on_counters:
                    later = known.counted[known.counted["at"] > set_at]
                    younger = replace(younger, counted=later)
                if younger.has(claim):
                    evidence, bound = younger, BEFORE
        row, parts = _judged(evidence, claim, machine)
        if bound and claim.bounds:
            row = replace(row, commit=claim.bounds.commit, set_at=claim.bounds.set_at)
        yield replace(row, bound=bound), parts


def _judged(
    evidence: MachineResults, claim: Claim, machine: str
) -> tuple[ClaimRow, list[ClaimPartRow]]:
    """The row of the claim and those of its parts; of a single comparison, there are none."""
    key: Columns = {"study": evidence.study.name, "claim": claim.id, "machine": machine}
    published = math.nan if claim.published is None else claim.published
    without = key | _figure_columns(None, published)
    if not claim.tests:
        return ClaimRow(**without, verdict=NOT_TESTED, reason=claim.untested), []
    outcomes = [test.judge(evidence, claim.published) for test in claim.tests]
    units = evidence.study.units
    judged = [
        key
        | {"verdict": outcome.verdict, "reason": outcome.reason}
        | _figure_columns(outcome.figure, published, test.figure_unit(units), test.case)
        for test, outcome in zip(claim.tests, outcomes, strict=True)
    ]
    if len(judged) == 1:
        return ClaimRow(**judged[0]), []
    # No one figure speaks for several comparisons: each has a row, and its words in the reason.
    decisive = sorted(
        range(len(outcomes)), key=lambda index: _decides(claim.tests[index], outcomes[index])
    )
    parts = [
        ClaimPartRow(part=index + 1, comparison=claim.tests[index].title, **judged[index])
        for index in decisive
    ]
    reason = "; ".join(part.sentence(with_case=claim.in_several_cases) for part in parts)
    verdict = together(outcome.verdict for outcome in outcomes)
    return ClaimRow(**without, verdict=verdict, reason=reason), parts


def runs_of(by_visit: pd.Series) -> list[list[float]]:
    """By run, the medians of its rounds. NotTested where no one figure stands for them."""
    by_round = by_visit.groupby(["run", "round"]).median()
    runs = [list(rounds) for _, rounds in by_round.groupby("run")]
    if (modes := count_modes(runs)) > 1:
        raise NotTested(f"the rounds have {modes} modes: no one figure stands for them")
    return runs


def _figure_columns(
    figure: Figure | None, published: float, unit: str = "", case: str = ""
) -> Columns:
    """The columns of both tables from `published` on; `published` is the claim's."""
    if figure is None:
        figure = Figure(math.nan, math.nan, math.nan, published)
    return {
        "published": figure.published,
        "measured": figure.value,
        "ci_low": figure.low,
        "ci_high": figure.high,
        "unit": unit,
        "case": case,
    }


def _decides(test: Comparison, outcome: Outcome) -> tuple[int, float]:
    """Sorts the parts of a claim: those that do not hold first, then by their room to the bound."""
    order = (FAILS, NOT_TESTED, HOLDS).index(outcome.verdict)
    return order, 0.0 if outcome.figure is None else test.room(outcome.figure)
