"""Base of all kinds of comparison: their keys in study.yaml, judgement and text.

A subclass with a `kind` is available under that name in study.yaml, without another entry. A key
has the same type in every kind. `names` marks a key that refers to a `variant`, a `metric`, a
`case`, or to `cases` if it is a list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Final

from pydantic import Field, Strict

from analysis.base.keys import Keys, Maybe, Positive, key, keys_of
from analysis.base.quantities import percent, percent_interval, ratio, ratio_interval
from analysis.study.claims.evidence import Evidence
from analysis.study.claims.verdicts import NOT_TESTED, Bound, Figure, NotTested, Outcome

OF: Final = "The variant of the claim."
OVER: Final = "The baseline."
CASE: Final = "key=value pairs joined by commas, as in results; the headline case if omitted."
"""Descriptions of keys that most kinds have."""

KINDS: Final[dict[str, type[Comparison]]] = {}
"""Every kind by its name in study.yaml."""


@dataclass(frozen=True, kw_only=True)
class Comparison(Keys, ABC):
    """One test of a claim, in the case with the id `case`.

    `on_rows`: it uses only the published rows, so that it is judged once and not per machine.
    `on_counters`: it uses only the counters of a profiler, and no samples.
    """

    kind: ClassVar[str] = ""
    on_rows: ClassVar[bool] = False
    on_counters: ClassVar[bool] = False

    case: str = ""

    def __init_subclass__(cls, kind: str = "") -> None:
        super().__init_subclass__()
        cls.kind = kind
        if kind:
            KINDS[kind] = cls

    @property
    def variants(self) -> list[str]:
        """The compared variants, in the order of the keys."""
        return list(dict(self.named("variant")).values())

    @property
    def cases(self) -> list[str]:
        """The ids of its cases."""
        return [self.case, *dict(self.named("case", "cases")).values()]

    @property
    def title(self) -> str:
        """The compared variants and metrics, in words."""
        metrics = dict(self.named("metric")).values()
        words = [" over ".join(self.variants) or self.kind, *metrics]
        return " ".join(filter(None, words))

    def named(self, *what: str) -> Iterator[tuple[str, str]]:
        """(key, name) of every reference to one of `what`."""
        for name, one in keys_of(type(self)).items():
            value = getattr(self, name)
            match one.metadata.get("names"):
                case "cases" if "cases" in what:
                    yield from ((f"{name}.{index}", case) for index, case in enumerate(value))
                case found if found in what:
                    yield name, value

    def figure_unit(self, units: Mapping[str, str]) -> str:
        """SI base unit of its figure; 1 for ratios, shares and counts. `units` are by metric."""
        return "1"

    def judge(self, evidence: Evidence, published: float | None = None) -> Outcome:
        """The outcome; `published` replaces the figure of the published rows."""
        try:
            outcome = self._judge(evidence, published)
        except NotTested as reason:
            return Outcome(NOT_TESTED, str(reason), runs=reason.runs)
        figure = outcome.figure
        return outcome if figure is None else replace(outcome, runs=figure.runs)

    @abstractmethod
    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        """The outcome; raises NotTested with the reason."""

    def room(self, figure: Figure) -> float:
        """Distance from the bound, as a share of it; negative if the figure violates it."""
        return 0.0

    def write(self, value: float, unit: str) -> str:
        """Its figure in `unit`, as text for pages."""
        return ratio(value)

    def write_interval(self, value: float, low: float, high: float, unit: str) -> str:
        """The interval of its figure `value`."""
        return ratio_interval(low, high)


@dataclass(frozen=True, kw_only=True)
class Bounded(Comparison):
    """A comparison whose figure must meet a bound: exactly one of its three keys."""

    at_least: Maybe[Positive] = key("The figure's whole interval must lie at or above this.", None)
    at_most: Maybe[Positive] = key("The figure's whole interval must lie at or below this.", None)
    within: Maybe[Annotated[float, Strict(), Field(gt=0, le=1)]] = key(
        "The figure's whole interval must lie within this margin around the published figure, a"
        " share of that.",
        None,
    )

    @property
    def bounds(self) -> list[Bound]:
        """The bounds that study.yaml names: one, if the comparison is valid."""
        found = ((name, getattr(self, name)) for name in BOUNDS)
        return [Bound(name, value) for name, value in found if value is not None]

    @property
    def bound(self) -> Bound:
        return self.bounds[0]

    @abstractmethod
    def figure(self, evidence: Evidence) -> Figure:
        """The figure to compare with the bound. Raises NotTested."""

    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        figure = self.figure(evidence)
        if published is not None:
            figure = replace(figure, published=published)
        return self.bound.judge(figure)

    def room(self, figure: Figure) -> float:
        return self.bound.room(figure)


@dataclass(frozen=True, kw_only=True)
class OfShares(Bounded):
    """Its figures are shares of 1."""

    def write(self, value: float, unit: str) -> str:
        return percent(value)

    def write_interval(self, value: float, low: float, high: float, unit: str) -> str:
        return percent_interval(value, low, high)


BOUNDS: Final = tuple(keys_of(Bounded))
