"""Kinds of comparison of published rows alone."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from analysis.base.keys import Name, Positive, Sentence, Text, key, only
from analysis.base.units import DATA_RATES, SI
from analysis.study.claims.comparison import CASE, OF, OVER, Bounded, Comparison, OfShares
from analysis.study.claims.evidence import Evidence, Statement
from analysis.study.claims.verdicts import FAILS, HOLDS, Figure, Missing, Outcome

DataRate = Annotated[
    Text,
    only(DATA_RATES.__contains__, f"one of {list(DATA_RATES)}"),
    Field(json_schema_extra={"enum": list(DATA_RATES)}),
]


@dataclass(frozen=True, kw_only=True)
class Units(Comparison, kind="units"):
    """Whether the rates printed in `printed` agree with the printed times only in `meant`."""

    on_rows: ClassVar[bool] = True

    printed: DataRate = key("The printed unit of the rates.")
    meant: DataRate = key("The true unit of the rates.")

    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        pairs = [
            (time, rate)
            for time in _times(evidence.statements)
            for rate in evidence.statements
            if rate.unit_printed == self.printed
            and (rate.variant, rate.case) == (time.variant, time.case)
        ]
        if not pairs:
            raise Missing(f"no published row has both a time and a rate in {self.printed}")
        agrees = {
            unit: sum(_agree(time, rate, SI[unit][1]) for time, rate in pairs)
            for unit in (self.meant, self.printed)
        }
        factors = [time.rate / (float(rate.printed) * SI[self.printed][1]) for time, rate in pairs]
        figure = Figure(statistics.median(factors), min(factors), max(factors))
        holds = agrees[self.meant] == len(pairs) and agrees[self.printed] == 0
        counted = " and ".join(f"in {count} if read in {unit}" for unit, count in agrees.items())
        reason = f"payload over printed time is the printed rate {counted}, of {len(pairs)} rows"
        return Outcome(HOLDS if holds else FAILS, reason, figure)


@dataclass(frozen=True, kw_only=True)
class PrintedShare(OfShares, kind="printed_share"):
    """The printed rate over a limit, both as printed and as payload over printed time."""

    on_rows: ClassVar[bool] = True

    of: Name = key(OF, names="variant")
    limit: Positive = key("The limit of the printed rate, in `unit`.")
    unit: DataRate = key("The unit of `limit` and of the printed rate.")
    case: Text = key(CASE, "")

    def figure(self, evidence: Evidence) -> Figure:
        printed = [s for s in evidence.statements if (s.variant, s.case) == (self.of, self.case)]
        rates = [statement for statement in printed if statement.unit_printed == self.unit]
        times = _times(printed)
        if not rates or not times:
            raise Missing(f"{self.of} has no published time and rate in {self.unit}")
        reached = times[0].rate / (self.limit * SI[self.unit][1])
        return Figure(reached, reached, reached, float(rates[0].printed) / self.limit)


@dataclass(frozen=True, kw_only=True)
class PrintedSpeedup(Bounded, kind="printed_speedup"):
    """The printed rate of one variant over that of another, where `source` printed both."""

    on_rows: ClassVar[bool] = True

    of: Name = key(OF, names="variant")
    over: Name = key(OVER, names="variant")
    source: Sentence = key("The source, as in the published rows.")
    case: Text = key(CASE, "")

    def figure(self, evidence: Evidence) -> Figure:
        of, over = (self._rate(evidence, name) for name in self.variants)
        return Figure(of / over, of / over, of / over)

    def _rate(self, evidence: Evidence, variant: str) -> float:
        rates = [
            statement.rate
            for statement in evidence.statements
            if (statement.variant, statement.case) == (variant, self.case)
            and statement.source == self.source
            and not math.isnan(statement.rate)
        ]
        if not rates:
            raise Missing(f"{self.source} printed no rate of {variant} in this case")
        return rates[0]


def _times(statements: Sequence[Statement]) -> list[Statement]:
    """Statements of a time, of operations that deliver bytes."""
    return [s for s in statements if SI[s.unit_meant][0] == "s" and not math.isnan(s.rate)]


def _agree(time: Statement, rate: Statement, unit: float) -> bool:
    """Whether a time and a rate, rounded as printed, can belong to one operation.

    `unit` is in B/s; both printed numbers may be off by half of their last digit.
    """
    printed = float(rate.printed)
    slack = _half_digit(rate.printed) / printed + _half_digit(time.printed) / float(time.printed)
    return math.isclose(time.rate, printed * unit, rel_tol=slack * 1.01)


def _half_digit(printed: str) -> float:
    decimals = printed.partition(".")[2]
    return 0.5 * 10.0 ** -len(decimals)
