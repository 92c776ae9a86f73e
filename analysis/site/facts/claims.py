"""A study's claims: verdicts, the figures behind them, and words about both."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, TypeVar

from analysis.base.quantities import quantity_interval
from analysis.results.store.runs import PUBLISHED as PUBLISHED
from analysis.results.tables.rows import ClaimPartRow, ClaimRow, rows_of
from analysis.site.facts.basis import (
    figures_by_run,
    in_few,
    is_enough,
    is_headline,
    without_unsupported_intervals,
)
from analysis.site.facts.inputs import Inputs
from analysis.study import Study
from analysis.study.claims.claim import Comparison
from analysis.study.claims.verdicts import AFTERWARDS, BEFORE, NOT_TESTED

Judged = TypeVar("Judged", ClaimRow, ClaimPartRow)
UNDECIDED: Final = "undecided"
"""Name on pages for an untested claim whose variants were all measured."""


@dataclass(frozen=True)
class Verdicts:
    """Rows of claims.csv and claim_parts.csv about one study, without the intervals that their runs
    do not allow."""

    inputs: Inputs
    study: Study

    @cached_property
    def by_claim(self) -> Mapping[str, Sequence[ClaimRow]]:
        """Rows of claims.csv by claim, one per machine."""
        claims: defaultdict[str, list[ClaimRow]] = defaultdict(list)
        for row in self._rows("claims", ClaimRow):
            claims[row.claim].append(_without_unsupported_verdict_interval(row, row))
        return dict(claims)

    @cached_property
    def parts(self) -> Mapping[tuple[str, str], Sequence[ClaimPartRow]]:
        """Rows of claim_parts.csv by claim and machine, for claims with several comparisons; the
        deciding ones first."""
        claims = {(row.claim, row.machine): row for rows in self.by_claim.values() for row in rows}
        parts: defaultdict[tuple[str, str], list[ClaimPartRow]] = defaultdict(list)
        for row in self._rows("claim_parts", ClaimPartRow):
            key = row.claim, row.machine
            parts[key].append(_without_unsupported_verdict_interval(row, claims[key]))
        return dict(parts)

    def _rows(self, name: str, kind: type[Judged]) -> list[Judged]:
        table = self.inputs.tables[name]
        of_study = table[table["study"] == self.study.name]
        return rows_of(without_unsupported_intervals(of_study), kind)

    def basis(self, row: ClaimRow) -> tuple[int, int]:
        """Least number of runs and of hosts of the figures of a claim; 0 and 0 for a claim on
        profiles or printed figures."""
        parts = self.parts.get((row.claim, row.machine), ())
        of_parts = [(len(figures_by_run(part)), part.hosts) for part in parts if part.by_run]
        runs, hosts = zip(*of_parts, (row.runs, row.hosts), strict=True)
        return min(runs), min(hosts)

    def in_few(self, row: ClaimRow) -> str:
        """`in 1 run on 1 host` for a verdict that uses too few runs for a headline; else empty."""
        if row.verdict == NOT_TESTED or not row.runs:
            return ""
        runs, hosts = self.basis(row)
        if row.judging:
            runs, hosts = min(runs, row.judging), min(hosts, row.judging_hosts)
        return in_few(runs, hosts)

    def shown(self, row: ClaimRow) -> str:
        """The verdict on pages: that of the row, or `undecided`."""
        if row.verdict != NOT_TESTED:
            return row.verdict
        parts = self.parts.get((row.claim, row.machine), [row])
        figures = [part.judged for part in parts if part.verdict == NOT_TESTED]
        return NOT_TESTED if any(map(math.isnan, figures)) else UNDECIDED


def written_interval(test: Comparison, figures: ClaimRow | ClaimPartRow) -> str:
    """The interval of `figures` in the format of `test`; empty if it has no width."""
    low, high = figures.ci_low, figures.ci_high
    if math.isnan(low) or math.isnan(high) or low == high:
        return ""
    return quantity_interval(figures.measured, low, high, test.written_unit)


def _without_unsupported_verdict_interval(row: Judged, claim: ClaimRow) -> Judged:
    """A row of `claim` without the interval of its verdict if the runs do not allow that."""
    is_of_few = claim.judging and not is_enough(claim.judging, claim.judging_hosts)
    if is_of_few or not is_headline(row):
        return replace(row, judged_low=math.nan, judged_high=math.nan)
    return row


def chosen_after(row: ClaimRow) -> str:
    """A note that the threshold was chosen after the runs that the verdict uses; else empty."""
    if row.bound != AFTERWARDS:
        return ""
    # A claim on hardware counters is tested on profiles.
    judges = {0: "this profile", 1: "this run"}.get(row.runs, "these runs")
    return f"threshold chosen after {judges}"


def judges_phrase(row: ClaimRow) -> str:
    """`verdict from the 3 of 4 runs made after we fixed the threshold`; empty if all decide."""
    if row.bound != BEFORE or row.judging >= row.runs:
        return ""
    if not row.judging:
        runs = "one run" if row.runs == 1 else f"{row.runs} runs"
        return f"{runs}, made before the threshold was fixed"
    which = "one" if row.judging == 1 else str(row.judging)
    return f"verdict from the {which} of {row.runs} runs made after we fixed the threshold"
