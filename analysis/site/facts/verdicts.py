"""What became of a study's claims, and of the comparisons that make them up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from analysis.results.store.folders import PUBLISHED
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.rows import ClaimPartRow, ClaimRow, rows_of
from analysis.study import Study
from analysis.study.claims.verdicts import AFTERWARDS, BEFORE, NOT_TESTED

__all__ = ["PUBLISHED", "UNDECIDED", "Verdicts", "chosen_after", "judges_phrase"]

UNDECIDED: Final = "undecided"
"""What pages call a claim that is not tested although all that it compares was measured."""


@dataclass(frozen=True)
class Verdicts:
    """Rows of claims.csv and claim_parts.csv about one study."""

    inputs: Inputs
    study: Study

    @cached_property
    def by_claim(self) -> Mapping[str, Sequence[ClaimRow]]:
        """A row a machine of each claim that has been judged on one."""
        table = self.inputs.tables["claims"]
        found: dict[str, list[ClaimRow]] = {}
        for row in rows_of(table[table["study"] == self.study.name], ClaimRow):
            found.setdefault(row.claim, []).append(row)
        return found

    @cached_property
    def parts(self) -> Mapping[tuple[str, str], Sequence[ClaimPartRow]]:
        """By claim and machine, of claims that are made up of several comparisons; those first
        that decide."""
        table = self.inputs.tables["claim_parts"]
        found: dict[tuple[str, str], list[ClaimPartRow]] = {}
        for row in rows_of(table[table["study"] == self.study.name], ClaimPartRow):
            found.setdefault((row.claim, row.machine), []).append(row)
        return found

    def shown(self, row: ClaimRow) -> str:
        """The verdict as pages have it: that of the row, or `undecided`."""
        if row.verdict != NOT_TESTED:
            return row.verdict
        parts = self.parts.get((row.claim, row.machine), [row])
        figures = [part.judged for part in parts if part.verdict == NOT_TESTED]
        return NOT_TESTED if any(map(math.isnan, figures)) else UNDECIDED


def chosen_after(row: ClaimRow) -> str:
    """That the threshold is younger than all that judges the claim; empty where it is not."""
    if row.bound != AFTERWARDS:
        return ""
    # A claim on hardware counters is judged by profiles.
    judges = {0: "this profile", 1: "this run"}.get(row.runs, "these runs")
    return f"threshold chosen after {judges}"


def judges_phrase(row: ClaimRow) -> str:
    """`4 runs; 1 of them may judge: the others are older than the threshold`; empty where all of
    them may."""
    others = row.runs - row.judging
    if row.bound != BEFORE or others < 1:
        return ""
    older = "the other is" if others == 1 else "the others are"
    return f"{row.runs} runs; {row.judging} of them may judge: {older} older than the threshold"
