"""Claims as study.yaml lists them, a write-up's and ours, each with what tests it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, replace
from functools import cached_property
from typing import Any

from analysis.base.errors import FieldError, refuse_repeats, require_known
from analysis.base.quantities import digits
from analysis.study.claims.comparison import BOUNDS, KINDS, Bounded, Comparison
from analysis.study.claims.findings import Finding, parse_finding
from analysis.study.claims.kinds import Measured
from analysis.study.claims.verdicts import Bound


@dataclass(frozen=True)
class Claim:
    """One claim in our own words. It holds where every one of `tests` does.

    `published` is the write-up's own figure in SI base units; None where it printed none or the
    published rows give it. `untested` is the reason why there are no tests. `ours` marks what no
    write-up says: this project's own targets, and what it found out itself. `bounds` has the digest
    of each of `tests`.
    """

    id: str
    says: str
    published: float | None
    tests: tuple[Comparison, ...]
    untested: str
    ours: bool = False
    bounds: tuple[str, ...] = ()
    finding: Finding | None = None

    @property
    def on_rows(self) -> bool:
        """Whether the published rows alone decide it."""
        return bool(self.tests) and all(test.on_rows for test in self.tests)

    @property
    def on_counters(self) -> bool:
        """Whether it takes profiles to decide it."""
        return any(test.on_counters for test in self.tests)

    @property
    def variants(self) -> list[str]:
        """Every variant the tests compare, in the order of their mention."""
        return list(dict.fromkeys(name for test in self.tests for name in test.variants))

    @cached_property
    def bounds_by_variant(self) -> Mapping[str, frozenset[str]]:
        """The digests of the tests that compare each variant."""
        return {
            name: frozenset(
                digest
                for test, digest in zip(self.tests, self.bounds, strict=True)
                if name in test.variants
            )
            for name in self.variants
        }

    @property
    def in_several_cases(self) -> bool:
        return len({test.case for test in self.tests}) > 1

    def write(self, value: float, units: Mapping[str, str]) -> str:
        """A figure of it as its kind of comparison writes one; `units` are by metric."""
        if len(self.tests) != 1:
            return digits(value)
        (test,) = self.tests
        return test.write(value, test.figure_unit(units))


@dataclass(frozen=True)
class Subjects:
    """What claims of a study may refer to: case ids by variant, units by metric, and which metrics
    are shares."""

    cases: Mapping[str, Collection[str]]
    units: Mapping[str, str]
    shares: Collection[str]
    headline: str


def parse_claims(
    entries: Sequence[Mapping[str, Any]],
    subjects: Subjects,
    where: str,
    bounds: Mapping[str, tuple[str, ...]],
    *,
    ours: bool = False,
) -> tuple[Claim, ...]:
    """The `claims` of a study.yaml that its schema has passed; `ours` where none says otherwise.

    `bounds` are by claim, as `bounds.digests` gives them. Raises FieldError for the first key,
    variant, case, metric or unit that does not fit.
    """
    refuse_repeats(f"{where}: claims", [entry["id"] for entry in entries])
    claims = (
        _claim({"ours": ours, **entry}, subjects, f"{where}: claims.{entry['id']}")
        for entry in entries
    )
    return tuple(replace(claim, bounds=bounds.get(claim.id, ())) for claim in claims)


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
        expected = tests[0].figure_unit(subjects.units)
        if published["unit"] != expected:
            raise FieldError(f"{where}.published.unit", repr(expected), published["unit"])
    return Claim(
        id=entry["id"],
        says=entry["says"].strip(),
        published=float(published["value"]) if published else None,
        tests=tests,
        untested=entry.get("untested", "").strip(),
        ours=entry["ours"],
        finding=parse_finding(entry.get("finding"), len(tests), f"{where}.finding"),
    )


def _comparison(part: Mapping[str, Any], subjects: Subjects, where: str) -> Comparison:
    kind = KINDS[part["kind"]]
    bounds = sorted(set(part) & set(BOUNDS))
    has_bound = issubclass(kind, Bounded)
    if len(bounds) != int(has_bound):
        expected = f"exactly one of {list(BOUNDS)}" if has_bound else "no bound"
        raise FieldError(where, expected, bounds)
    given = {key: part[key] for key in part if key not in ("kind", *bounds)}
    _refuse_other_keys(given, kind, where)
    values = {"case": subjects.headline} | given
    if has_bound:
        (name,) = bounds
        values["bound"] = Bound(name, float(part[name]))
    if issubclass(kind, Measured):
        values["is_share"] = given["metric"] in subjects.shares
    test = kind(**values)
    known = {"variant": subjects.cases, "metric": subjects.units}
    cases = {"case": test.case}
    for name, key in kind.keys().items():
        what = key.metadata["names"]
        if what == "case":
            cases[name] = given[name]
        elif what == "cases":
            cases |= {f"{name}.{index}": case for index, case in enumerate(given[name])}
        elif what and name in given:
            require_known(f"{where}.{name}", given[name], known[what])
    # A figure of something and itself says nothing.
    refuse_repeats(f"{where}: of, over", test.variants)
    refuse_repeats(f"{where}: {', '.join(cases)}", cases.values())
    for variant in test.variants:
        for name, case in cases.items():
            if case not in subjects.cases[variant]:
                raise FieldError(f"{where}.{name}", f"a case that {variant} has", case)
    return test


def _refuse_other_keys(given: Collection[str], kind: type[Comparison], where: str) -> None:
    keys = kind.keys()
    needed = sorted(name for name, key in keys.items() if key.default is MISSING)
    allowed = sorted(set(keys) - set(needed))
    if not set(needed) <= set(given) <= set(keys):
        expected = f"the keys {needed}" + (f", perhaps {allowed}" if allowed else "")
        raise FieldError(where, expected, sorted(given))
