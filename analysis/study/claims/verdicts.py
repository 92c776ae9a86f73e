"""Verdicts: whether a measured figure and its interval meet a bound."""

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

MISSING: Final = "missing: "
"""Beginning of the reason of a verdict for want of evidence that a machine could give."""


class NotTested(Exception):
    """A comparison is impossible; the message is the reason of the verdict. `runs` measured the
    values that no figure describes."""

    def __init__(self, reason: str, runs: Iterable[str] = ()) -> None:
        super().__init__(reason)
        self.runs = frozenset(runs)


class Missing(NotTested):
    """Evidence is missing: it was not measured or not captured. A machine that cannot
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


def outcome_of(figure: Figure, bound: str, value: float) -> Outcome:
    """Whether the interval of `figure` meets a threshold; an undecided interval gives NOT_TESTED.

    `bound` is `at_least`, `at_most` or `within`, where `value` is a share of the published figure.
    The interval must lie within what the bound allows; where it lies outside, the claim fails.
    """

    def outcome(verdict: str, reason: str, on_average: str = "") -> Outcome:
        return Outcome(verdict, reason, figure, on_average, figure.runs)

    if math.isnan(figure.low) or math.isnan(figure.high):
        return outcome(NOT_TESTED, "a single round gives no interval")
    low, high = (-math.inf, value) if bound == "at_most" else (value, math.inf)
    words = f"{bound.replace('_', ' ')} {short(value)}"
    if bound == "within":
        if math.isnan(figure.published):
            return outcome(NOT_TESTED, "there is no published figure to compare with")
        low, high = (figure.published * (1 + share) for share in (-value, value))
        words = f"within {value * 100:g} % of the published: {short(low)} to {short(high)}"
    verdict = _verdict((figure.low, figure.high), low, high)
    if verdict != NOT_TESTED:
        return outcome(verdict, words if verdict == HOLDS else f"not {words}")
    runs = len(figure.by_run)
    within = f" within {runs} run{'s' * (runs > 1)}" if 0 < runs < MIN_RUNS else ""
    interval = f"interval{within} {short(figure.low)} to {short(figure.high)}"
    reason = f"the {interval} does not decide whether it is {words}"
    on_average = _verdict(figure.mean, low, high)
    if on_average == NOT_TESTED:
        return outcome(verdict, reason)
    is_it = "it is" if on_average == HOLDS else "it is not"
    mean = " to ".join(map(short, figure.mean))
    return outcome(verdict, f"{reason}, though on average over hosts {is_it} ({mean})", on_average)


def _verdict(interval: tuple[float, float], least: float, most: float) -> str:
    """The verdict on an interval, of which `least` to `most` is allowed; NaN is undecided.

    An end counts as a bound that it equals but for rounding: equal figures of all runs come back
    from their logarithms with another last digit.
    """
    low, high = (
        next((bound for bound in (least, most) if math.isclose(end, bound, rel_tol=1e-9)), end)
        for end in interval
    )
    if least <= low and high <= most:
        return HOLDS
    return FAILS if high < least or low > most else NOT_TESTED


def together(verdicts: Iterable[str]) -> str:
    """The verdict on a claim by those on its parts: one that fails decides."""
    known = set(verdicts)
    return next((verdict for verdict in (FAILS, NOT_TESTED) if verdict in known), HOLDS)


def short(value: float) -> str:
    return f"{value:.4g}"
