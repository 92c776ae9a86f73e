"""Kinds of comparison of hardware counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from analysis.base.keys import Name, Text, key
from analysis.base.quantities import digits
from analysis.study.claims.comparison import CASE, OF, OVER, Bounded
from analysis.study.claims.evidence import Evidence
from analysis.study.claims.verdicts import Figure, Missing

Counter = Annotated[Text, Field(pattern=r"^[a-z]+__[a-z0-9_]+\.sum$")]


@dataclass(frozen=True, kw_only=True)
class _Counted(Bounded):
    """Its figures are ratios of hardware counters of one launch. They have no interval, because
    the same program with the same data counts the same."""

    on_counters: ClassVar[bool] = True

    of: Name = key(OF, names="variant")
    counter: Counter = key("A counter of Nsight Compute, summed over a kernel.")
    case: Text = key(CASE, "")

    def _ratio(self, evidence: Evidence, over: str, counter: str) -> Figure:
        counted = evidence.count(self.of, self.case, self.counter)
        base = evidence.count(over, self.case, counter)
        if not base:
            raise Missing(f"{over} counted no {counter}")
        return Figure(counted / base, counted / base, counted / base)


@dataclass(frozen=True, kw_only=True)
class CountsPer(_Counted, kind="counts_per"):
    """A hardware counter of a variant over another of its counters, `per`, by a profile."""

    per: Counter = key("The counter in the denominator.")

    @property
    def title(self) -> str:
        return f"{self.of} {self.counter} per {self.per}"

    def figure(self, evidence: Evidence) -> Figure:
        return self._ratio(evidence, self.of, self.per)

    def write(self, value: float, unit: str) -> str:
        return digits(value)


@dataclass(frozen=True, kw_only=True)
class CountsOver(_Counted, kind="counts_over"):
    """A hardware counter of one variant as a multiple of the same counter of another, by their
    profiles."""

    over: Name = key(OVER, names="variant")

    @property
    def title(self) -> str:
        return f"{super().title} {self.counter}"

    def figure(self, evidence: Evidence) -> Figure:
        return self._ratio(evidence, self.over, self.counter)
