"""Verdicts on a study's claims, and on their comparisons."""

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

UNDECIDED: Final = "undecided"
"""Name on pages for an untested claim whose variants were all measured."""


@dataclass(frozen=True)
class Verdicts:
    """Rows of claims.csv and claim_parts.csv about one study."""

    inputs: Inputs
    study: Study

    @cached_property
    def by_claim(self) -> Mapping[str, Sequence[ClaimRow]]:
        """Rows of claims.csv by claim, one per machine."""
        table = self.inputs.tables["claims"]
        found: dict[str, list[ClaimRow]] = {}
        for row in rows_of(table[table["study"] == self.study.name], ClaimRow):
            found.setdefault(row.claim, []).append(row)
        return found

    @cached_property
    def parts(self) -> Mapping[tuple[str, str], Sequence[ClaimPartRow]]:
        """Rows of claim_parts.csv by claim and machine, for claims with several comparisons; the
        deciding ones first."""
        table = self.inputs.tables["claim_parts"]
        found: dict[tuple[str, str], list[ClaimPartRow]] = {}
        for row in rows_of(table[table["study"] == self.study.name], ClaimPartRow):
            found.setdefault((row.claim, row.machine), []).append(row)
        return found

    def shown(self, row: ClaimRow) -> str:
        """The verdict on pages: that of the row, or `undecided`."""
        if row.verdict != NOT_TESTED:
            return row.verdict
        parts = self.parts.get((row.claim, row.machine), [row])
        figures = [part.judged for part in parts if part.verdict == NOT_TESTED]
        return NOT_TESTED if any(map(math.isnan, figures)) else UNDECIDED


def chosen_after(row: ClaimRow) -> str:
    """A note that the threshold was chosen after the runs that the verdict uses; else empty."""
    if row.bound != AFTERWARDS:
        return ""
    # A claim on hardware counters is tested on profiles.
    judges = {0: "this profile", 1: "this run"}.get(row.runs, "these runs")
    return f"threshold chosen after {judges}"


def judges_phrase(row: ClaimRow) -> str:
    """`4 runs; the verdict uses 1: the others are older than the threshold`; empty if it uses
    all."""
    others = row.runs - row.judging
    if row.bound != BEFORE or others < 1:
        return ""
    older = "the other is" if others == 1 else "the others are"
    return f"{row.runs} runs; the verdict uses {row.judging}: {older} older than the threshold"
