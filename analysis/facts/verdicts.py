"""What became of a study's claims, and of the comparisons that make them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from analysis.facts.inputs import Inputs
from analysis.facts.rows import ClaimPartRow, ClaimRow, rows_of
from analysis.store.folders import PUBLISHED
from analysis.study import Study

__all__ = ["PUBLISHED", "Verdicts"]


@dataclass(frozen=True)
class Verdicts:
    """Rows of claims.csv and claim_parts.csv about one study."""

    inputs: Inputs
    study: Study

    @cached_property
    def by_claim(self) -> Mapping[str, Sequence[ClaimRow]]:
        """A row a machine of each claim that has been judged on one."""
        table = self.inputs.claims
        found: dict[str, list[ClaimRow]] = {}
        for row in rows_of(table[table["study"] == self.study.name], ClaimRow):
            found.setdefault(row.claim, []).append(row)
        return found

    @cached_property
    def parts(self) -> Mapping[tuple[str, str], Sequence[ClaimPartRow]]:
        """By claim and machine, of claims that are made up of several comparisons; those first
        that decide."""
        table = self.inputs.claim_parts
        found: dict[tuple[str, str], list[ClaimPartRow]] = {}
        for row in rows_of(table[table["study"] == self.study.name], ClaimPartRow):
            found.setdefault((row.claim, row.machine), []).append(row)
        return found
