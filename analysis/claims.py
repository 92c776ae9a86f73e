"""Claims, a write-up's and ours, as study.yaml lists them, each with what tests it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analysis.errors import FieldError

BOUNDS: Final = ("at_least", "at_most", "within")

SUBJECTS: Final = ("of", "over")
"""The keys of a comparison that name a variant."""


@dataclass(frozen=True)
class Kind:
    """Which keys a kind of comparison needs, which it may have, and whether it has a bound.

    `on_rows`: it is made of the published rows alone, so once and not on every machine.
    """

    needs: frozenset[str]
    allows: frozenset[str] = frozenset()
    has_bound: bool = True
    on_rows: bool = False


def _kind(needs: str, allows: str = "", **flags: bool) -> Kind:
    return Kind(frozenset(needs.split()), frozenset(allows.split()), **flags)


KINDS: Final[Mapping[str, Kind]] = {
    "speedup": _kind("of over", "by metric case"),
    "share": _kind("of over", "metric case"),
    "model_share": _kind("of", "metric case"),
    "figure": _kind("of metric", "case"),
    "correct": _kind("of", "case", has_bound=False),
    "units": _kind("printed meant", has_bound=False, on_rows=True),
    "printed_share": _kind("of limit unit", "case", on_rows=True),
}


@dataclass(frozen=True)
class Comparison:
    """One test: a kind, its subjects, and the bound its figure must meet.

    `case` is the id of the case to compare in; `metric` is empty where the preferred one that
    compares the subjects is meant. `bound` is one of BOUNDS with `value`; `within` is a share of
    the published figure.
    """

    kind: str
    case: str
    of: str = ""
    over: str = ""
    by: str = "time"
    metric: str = ""
    printed: str = ""
    meant: str = ""
    limit: float = 0.0
    unit: str = ""
    bound: str = ""
    value: float = 0.0

    @property
    def variants(self) -> list[str]:
        return [name for name in (self.of, self.over) if name]

    @property
    def on_rows(self) -> bool:
        return KINDS[self.kind].on_rows


@dataclass(frozen=True)
class Claim:
    """One claim in our own words. It holds where every one of `tests` does.

    `published` is the write-up's own figure in SI base units; None where it printed none or the
    published rows give it. `untested` is the reason why there are no tests. `ours` marks what no
    write-up says: this project's own targets, and what it found out itself.
    """

    id: str
    says: str
    published: float | None
    tests: tuple[Comparison, ...]
    untested: str
    ours: bool = False

    @property
    def on_rows(self) -> bool:
        """Whether the published rows alone decide it."""
        return bool(self.tests) and all(test.on_rows for test in self.tests)

    @property
    def variants(self) -> list[str]:
        """Every variant the tests compare, in the order of their mention."""
        return list(dict.fromkeys(name for test in self.tests for name in test.variants))


@dataclass(frozen=True)
class Subjects:
    """What claims of a study may refer to: case ids by variant, units by metric."""

    cases: Mapping[str, Collection[str]]
    units: Mapping[str, str]
    headline: str


def parse_claims(
    entries: Sequence[Mapping[str, Any]], subjects: Subjects, where: str, *, ours: bool = False
) -> tuple[Claim, ...]:
    """The `claims` of a study.yaml that its schema has passed; `ours` where none says otherwise.

    Raises FieldError for the first key, variant, case, metric or unit that does not fit.
    """
    claims: dict[str, Claim] = {}
    for entry in entries:
        here = f"{where}: claims.{entry['id']}"
        if entry["id"] in claims:
            raise FieldError(f"{where}: claims", "every entry once", entry["id"])
        claims[entry["id"]] = _claim({"ours": ours, **entry}, subjects, here)
    return tuple(claims.values())


def _claim(entry: Mapping[str, Any], subjects: Subjects, where: str) -> Claim:
    ways = sorted({"test", "all", "untested"} & set(entry))
    if len(ways) != 1:
        raise FieldError(where, "exactly one of test, all and untested", ways)
    found = {
        "test": [(f"{where}.test", entry.get("test"))],
        "all": [(f"{where}.all.{i}", part) for i, part in enumerate(entry.get("all", []))],
        "untested": [],
    }[ways[0]]
    tests = tuple(_comparison(part, subjects, here) for here, part in found)
    published = entry.get("published")
    if published and len(tests) == 1:
        expected = unit_of(tests[0], subjects.units)
        if published["unit"] != expected:
            raise FieldError(f"{where}.published.unit", repr(expected), published["unit"])
    return Claim(
        id=entry["id"],
        says=entry["says"].strip(),
        published=float(published["value"]) if published else None,
        tests=tests,
        untested=entry.get("untested", "").strip(),
        ours=entry["ours"],
    )


def unit_of(test: Comparison, units: Mapping[str, str]) -> str:
    """The SI base unit of what the test yields: ratios and shares have unit 1."""
    return units[test.metric] if test.kind == "figure" else "1"


def _comparison(part: Any, subjects: Subjects, where: str) -> Comparison:
    kind = KINDS[part["kind"]]
    given = set(part) - {"kind"}
    bounds = sorted(given & set(BOUNDS))
    if len(bounds) != int(kind.has_bound):
        expected = f"exactly one of {list(BOUNDS)}" if kind.has_bound else "no bound"
        raise FieldError(where, expected, bounds)
    own = given - set(bounds)
    if not kind.needs <= own <= kind.needs | kind.allows:
        expected = f"the keys {sorted(kind.needs)}"
        expected += f", perhaps {sorted(kind.allows)}" if kind.allows else ""
        raise FieldError(where, expected, sorted(own))
    test = Comparison(
        kind=part["kind"],
        bound=bounds[0] if bounds else "",
        value=float(part[bounds[0]]) if bounds else 0.0,
        **{"case": subjects.headline} | {key: part[key] for key in own},
    )
    for key in own & set(SUBJECTS):
        _refuse_unknown(part[key], subjects.cases, f"{where}.{key}")
    if test.metric:
        _refuse_unknown(test.metric, subjects.units, f"{where}.metric")
    for name in test.variants:
        if test.case not in subjects.cases[name]:
            raise FieldError(f"{where}.case", f"a case that {name} has", test.case)
    return test


def _refuse_unknown(name: str, known: Collection[str], where: str) -> None:
    if name not in known:
        raise FieldError(where, f"one of {list(known)}", name)
