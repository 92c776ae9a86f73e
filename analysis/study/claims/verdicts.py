"""Verdicts: whether a measured figure and its interval meet a bound."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from analysis.base.statistics import MIN_RUNS

HOLDS: Final = "holds"
FAILS: Final = "does not hold"
NOT_TESTED: Final = "not tested"

BEFORE: Final = "before"
AFTERWARDS: Final = "afterwards"
"""Whether a claim's bounds were set before the runs that judge it, or after."""


class NotTested(Exception):
    """A comparison is impossible; the message is the reason of the verdict. `runs` measured the
    values that no figure describes."""

    def __init__(self, reason: str, runs: Iterable[str] = ()) -> None:
        super().__init__(reason)
        self.runs = frozenset(runs)


MISSING: Final = "missing: "
"""Beginning of the reason of a verdict for want of evidence that a machine could give."""


class Missing(NotTested):
    """Evidence is missing: it was not measured, not captured, or not derived. A machine that cannot
    give it, and results of other code, are a plain NotTested."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{MISSING}{what}")


@dataclass(frozen=True)
class Figure:
    """A figure and its interval in SI base units; `published` is the write-up's, NaN if none.
    `mean` is the interval of the mean over hosts, NaN if there are too few. `by_run` are the
    figures of the `runs`, oldest first, and `hosts` is the number of their hosts."""

    value: float
    low: float
    high: float
    published: float = math.nan
    mean: tuple[float, float] = (math.nan, math.nan)
    by_run: tuple[float, ...] = ()
    runs: frozenset[str] = frozenset()
    hosts: int = 0

    @property
    def has_interval(self) -> bool:
        return not (math.isnan(self.low) or math.isnan(self.high))


@dataclass(frozen=True)
class Outcome:
    """A verdict, its reason in words, its figure, if there is one, and the runs that measured it.
    If the interval is undecided, `on_average` is the verdict on the mean over hosts; empty if that
    is undecided."""

    verdict: str
    reason: str
    figure: Figure | None = None
    on_average: str = ""
    runs: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Bound:
    """A threshold: `name` is `at_least`, `at_most` or `within`. For `within`, `value` is a share of
    the published figure."""

    name: str
    value: float

    def judge(self, figure: Figure) -> Outcome:
        """Whether the interval of `figure` meets the bound; undecided is not tested.

        The interval must lie within what the bound allows; where it lies outside of it, the claim
        fails. `within` allows what is so near to the published figure.
        """
        if not figure.has_interval:
            return Outcome(NOT_TESTED, "a single round gives no interval", figure)
        if self.name == "within" and math.isnan(figure.published):
            return Outcome(NOT_TESTED, "there is no published figure to compare with", figure)
        words = self._words(figure)
        verdict = self._verdict((figure.low, figure.high), figure)
        if verdict != NOT_TESTED:
            return Outcome(verdict, words if verdict == HOLDS else f"not {words}", figure)
        runs = len(figure.by_run)
        within = f" within {runs} run{'s' * (runs > 1)}" if 0 < runs < MIN_RUNS else ""
        interval = f"interval{within} {_interval(figure.low, figure.high)}"
        reason = f"the {interval} does not decide whether it is {words}"
        on_average = self._verdict(figure.mean, figure)
        if on_average == NOT_TESTED:
            return Outcome(verdict, reason, figure)
        is_it = "it is" if on_average == HOLDS else "it is not"
        but = f", though on average over hosts {is_it} ({_interval(*figure.mean)})"
        return Outcome(verdict, reason + but, figure, on_average)

    def _verdict(self, interval: tuple[float, float], figure: Figure) -> str:
        """The verdict on an interval of `figure`; NaN is undecided."""
        least, most = self._allowed(figure)
        low, high = (_snapped(end, (least, most)) for end in interval)
        if least <= low and high <= most:
            return HOLDS
        return FAILS if high < least or low > most else NOT_TESTED

    def _allowed(self, figure: Figure) -> tuple[float, float]:
        """Lowest and highest value that the bound allows."""
        if self.name == "within":
            low, high = (figure.published * (1 + share) for share in (-self.value, self.value))
            return low, high
        return (self.value, math.inf) if self.name == "at_least" else (-math.inf, self.value)

    def _words(self, figure: Figure) -> str:
        if self.name == "within":
            allowed = _interval(*self._allowed(figure))
            return f"within {self.value * 100:g} % of the published: {allowed}"
        return f"{self.name.replace('_', ' ')} {short(self.value)}"

    def room(self, figure: Figure) -> float:
        """Distance from the bound to the nearest end of the interval, as a share of the bound;
        negative if that end violates it, 0 for `within`."""
        if self.name == "within":
            return 0.0
        sign = 1 if self.name == "at_least" else -1
        low, high = sign * (figure.low - self.value), sign * (figure.high - self.value)
        return min(low, high) / (abs(self.value) or 1)


def together(verdicts: Iterable[str]) -> str:
    """The verdict on a claim by those on its parts: one that fails decides."""
    known = set(verdicts)
    return next((verdict for verdict in (FAILS, NOT_TESTED) if verdict in known), HOLDS)


def _snapped(end: float, bounds: Iterable[float]) -> float:
    """The bound that an interval's end equals but for rounding, else the end: equal figures of all
    runs come back from their logarithms with another last digit."""
    return next((bound for bound in bounds if math.isclose(end, bound, rel_tol=1e-9)), end)


def short(value: float) -> str:
    return f"{value:.4g}"


def _interval(low: float, high: float) -> str:
    return f"{short(low)} to {short(high)}"
