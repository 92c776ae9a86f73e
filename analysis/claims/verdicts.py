"""Verdicts: what a measured figure and its interval say of a bound."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

HOLDS: Final = "holds"
FAILS: Final = "does not hold"
NOT_TESTED: Final = "not tested"

BEFORE: Final = "before"
AFTERWARDS: Final = "afterwards"
"""When a claim's bounds were set: before the runs that judge it, or when those were known."""


class NotTested(Exception):
    """Why a comparison cannot be made; `Comparison.judge` makes it the reason."""


@dataclass(frozen=True)
class Figure:
    """A figure and its interval in SI base units; `published` is the write-up's, NaN if none."""

    value: float
    low: float
    high: float
    published: float = math.nan

    @property
    def has_interval(self) -> bool:
        return not (math.isnan(self.low) or math.isnan(self.high))


@dataclass(frozen=True)
class Outcome:
    """A verdict, its reason in words, and the figure it was made of, if there is one."""

    verdict: str
    reason: str
    figure: Figure | None = None


@dataclass(frozen=True)
class Bound:
    """What a figure must meet: `name` is `at_least`, `at_most` or `within`. Of `within`, `value` is
    a share of the published figure."""

    name: str
    value: float

    def judge(self, figure: Figure) -> Outcome:
        """Whether the interval of `figure` meets the bound; undecided is not tested.

        The interval must lie within what the bound allows; where it lies outside of it, the claim
        fails. `within` allows what is so near to the published figure.
        """
        if not figure.has_interval:
            return Outcome(NOT_TESTED, "a single round gives no interval", figure)
        if self.name == "within":
            return self._judge_nearness(figure)
        words = f"{self.name.replace('_', ' ')} {short(self.value)}"
        room = self._room_on_both_ends(figure)
        if min(room) >= 0:
            return Outcome(HOLDS, words, figure)
        if max(room) < 0:
            return Outcome(FAILS, f"not {words}", figure)
        return self._undecided(figure, words)

    def room(self, figure: Figure) -> float:
        """How far the whole interval is on the right side of the bound, as a share of the bound;
        0 for `within`, which has no side."""
        if self.name == "within":
            return 0.0
        low, high = self._room_on_both_ends(figure)
        return min(low, high) / (abs(self.value) or 1)

    def _room_on_both_ends(self, figure: Figure) -> tuple[float, float]:
        sign = 1 if self.name == "at_least" else -1
        return sign * (figure.low - self.value), sign * (figure.high - self.value)

    def _judge_nearness(self, figure: Figure) -> Outcome:
        if math.isnan(figure.published):
            reason = "there is no published figure to compare with"
            return Outcome(NOT_TESTED, reason, figure)
        low, high = (figure.published * (1 + share) for share in (-self.value, self.value))
        words = f"within {self.value * 100:g} % of the published: {short(low)} to {short(high)}"
        if low <= figure.low and figure.high <= high:
            return Outcome(HOLDS, words, figure)
        if figure.high < low or figure.low > high:
            return Outcome(FAILS, f"not {words}", figure)
        return self._undecided(figure, words)

    @staticmethod
    def _undecided(figure: Figure, words: str) -> Outcome:
        interval = f"{short(figure.low)} to {short(figure.high)}"
        reason = f"the interval {interval} does not decide whether it is {words}"
        return Outcome(NOT_TESTED, reason, figure)


def together(verdicts: Iterable[str]) -> str:
    """The verdict on a claim from those on its parts: one that does not hold decides."""
    known = set(verdicts)
    return next((verdict for verdict in (FAILS, NOT_TESTED) if verdict in known), HOLDS)


def short(value: float) -> str:
    return f"{value:.4g}"
