"""What every kind of comparison is: its keys in study.yaml, how it is judged, how it is written.

A class with a `kind` is known by that name in study.yaml, and needs no entry anywhere else. A key
has the same schema in every kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, replace
from dataclasses import fields as fields_of
from typing import Any, ClassVar, Final

from analysis.base.quantities import ratio, ratio_interval
from analysis.study.claims.evidence import Evidence
from analysis.study.claims.verdicts import NOT_TESTED, Bound, Figure, NotTested, Outcome

KINDS: Final[dict[str, type[Comparison]]] = {}
"""Every kind by its name in study.yaml."""

BOUNDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "at_least": {
        "description": "The figure's whole interval must lie at or above this.",
        "type": "number",
        "exclusiveMinimum": 0,
    },
    "at_most": {
        "description": "The figure's whole interval must lie at or below this.",
        "type": "number",
        "exclusiveMinimum": 0,
    },
    "within": {
        "description": (
            "The figure's whole interval must lie within this margin around the published figure, a"
            " share of that."
        ),
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 1,
    },
}
"""Schemas of the bounds that a figure may have to meet."""


def key(schema: Mapping[str, Any], *, default: Any = MISSING, names: str = "") -> Any:
    """A field that is a key of a comparison in study.yaml, with the schema of its value.

    One without a default has to be given. `names` is `variant`, `metric` or `case` where the value
    has to be the name of one, and `cases` where it has to be a list of them.
    """
    return field(default=default, metadata={"schema": schema, "names": names})


@dataclass(frozen=True, kw_only=True)
class Comparison(ABC):
    """One test of a claim, in the case with the id `case`.

    `on_rows`: it is made of the published rows alone, so once and not on every machine.
    `on_counters`: it is made of what a profiler counted, and of no samples.
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

    @classmethod
    def keys(cls) -> dict[str, Field[Any]]:
        """Its keys in study.yaml, beside that of the bound."""
        return {field.name: field for field in fields_of(cls) if "schema" in field.metadata}

    @property
    def variants(self) -> list[str]:
        """The variants it compares, in the order of its keys."""
        return self._named("variant")

    @property
    def cases(self) -> list[str]:
        """The ids of the cases it is made in."""
        lists = [name for name, one in self.keys().items() if one.metadata["names"] == "cases"]
        several = [case for name in lists for case in getattr(self, name)]
        return [self.case, *self._named("case"), *several]

    @property
    def title(self) -> str:
        """What is compared, in words."""
        words = [" over ".join(self.variants) or self.kind, *self._named("metric")]
        return " ".join(filter(None, words))

    def _named(self, what: str) -> list[str]:
        """Values of the keys that name a `what`."""
        named = [name for name, field in self.keys().items() if field.metadata["names"] == what]
        return [str(getattr(self, name)) for name in named]

    def figure_unit(self, units: Mapping[str, str]) -> str:
        """SI base unit of its figure; 1 for ratios, shares and counts. `units` are by metric."""
        return "1"

    def judge(self, evidence: Evidence, published: float | None = None) -> Outcome:
        """What it comes to; `published` goes before the figure of the published rows."""
        try:
            return self._judge(evidence, published)
        except NotTested as reason:
            return Outcome(NOT_TESTED, str(reason))

    @abstractmethod
    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        """As `judge`; raises NotTested."""

    def room(self, figure: Figure) -> float:
        """How far the figure is on the right side of the bound, as a share of that."""
        return 0.0

    def write(self, value: float, unit: str) -> str:
        """Its figure, in `unit`, as pages write it."""
        return ratio(value)

    def write_interval(self, value: float, low: float, high: float, unit: str) -> str:
        """The interval of its figure `value`."""
        return ratio_interval(low, high)


@dataclass(frozen=True, kw_only=True)
class Bounded(Comparison):
    """A comparison whose figure must meet a bound."""

    bound: Bound

    @abstractmethod
    def figure(self, evidence: Evidence) -> Figure:
        """What is held against the bound. Raises NotTested."""

    def _judge(self, evidence: Evidence, published: float | None) -> Outcome:
        figure = self.figure(evidence)
        if published is not None:
            figure = replace(figure, published=published)
        return self.bound.judge(figure)

    def room(self, figure: Figure) -> float:
        return self.bound.room(figure)


def comparison_schema() -> dict[str, Any]:
    """What the schema of a study.yaml says of a comparison: the keys of all kinds together. Which
    go with which kind is for `parse_claims` to check."""
    keys = {
        name: key.metadata["schema"] for kind in KINDS.values() for name, key in kind.keys().items()
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["kind"],
        "properties": {
            "kind": {"description": "What is compared.", "enum": list(KINDS)},
            **keys,
            **BOUNDS,
        },
    }
