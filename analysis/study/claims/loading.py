"""Claims of study.yaml, a write-up's and ours, with their tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from analysis.base.errors import FieldError, refuse_repeats, require_known
from analysis.base.keys import Boolean, Keys, Maybe, Name, Positive, Sentence, key, read
from analysis.base.quantities import digits
from analysis.study.claims.comparison import BOUNDS, KINDS, Bounded, Comparison
from analysis.study.claims.findings import Finding, check_finding
from analysis.study.claims.kinds import Measured

Part = Annotated[Mapping[str, Any], WithJsonSchema({"type": "object"})]
"""A comparison, as its class checks it."""


@dataclass(frozen=True)
class Published(Keys):
    value: Positive = key("The figure.")
    unit: Literal["s", "B", "J", "1", "B/s"] = key("Its SI base unit; 1 for ratios and shares.")


@dataclass(frozen=True, kw_only=True)
class ClaimKeys(Keys):
    id: Name = key("Names the claim in the ledger and in claims.csv.")
    says: Sentence = key("The claim as one sentence in the words of this project.")
    ours: Maybe[Boolean] = key(
        "Whether this is the project's claim, which is counted separately; by default it is the"
        " write-up's, if there is one.",
        None,
    )
    published: Maybe[Published] = key(
        "The write-up's figure, in the unit of the comparison. By default it is the same comparison"
        " of the rows in results/published, if those exist.",
        None,
    )
    test: Maybe[Part] = key("The one comparison that decides the claim.", None)
    all: Annotated[tuple[Part, ...], Field(min_length=2)] = key(
        "Comparisons that must all hold.", ()
    )
    untested: Sentence = key("Why nothing here tests the claim.", "")
    finding: Maybe[Finding] = key(
        "The finding that follows from the verdict, on top of the study's page; on the home page,"
        " too, where it contradicts a belief.",
        None,
    )


@dataclass(frozen=True)
class Claim:
    """One claim in the words of this project. It holds where every one of `tests` does.

    `published` is the write-up's figure in SI base units; None where it printed none or the
    published rows give it. `untested` is the reason why there are no tests. `ours` marks this
    project's targets and findings. `bounds` has the digest of each of `tests`.
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
        """Whether its verdict needs profiles."""
        return any(test.on_counters for test in self.tests)

    @property
    def variants(self) -> list[str]:
        """Every variant that the tests compare, in the order of the tests."""
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
        """A figure as text, in the form of its kind of comparison; `units` are by metric."""
        if len(self.tests) != 1:
            return digits(value)
        (test,) = self.tests
        return test.write(value, test.figure_unit(units))


@dataclass(frozen=True)
class Subjects:
    """Names that claims of a study may use: case ids by variant, units by metric, and the metrics
    that are shares."""

    cases: Mapping[str, Collection[str]]
    units: Mapping[str, str]
    shares: Collection[str]
    headline: str


def parse_claims(
    entries: Sequence[ClaimKeys],
    subjects: Subjects,
    where: str,
    *,
    ours: bool = False,
) -> tuple[Claim, ...]:
    """The `claims` of a study.yaml; `ours` where one does not say.

    Raises FieldError for the first key, variant, case, metric or unit that does not fit.
    """
    refuse_repeats(f"{where}: claims", [entry.id for entry in entries])
    return tuple(_claim(entry, subjects, f"{where}: claims.{entry.id}", ours) for entry in entries)


def _claim(entry: ClaimKeys, subjects: Subjects, where: str, ours: bool) -> Claim:
    ways = [way for way in ("all", "test", "untested") if getattr(entry, way)]
    if len(ways) != 1:
        raise FieldError(where, "exactly one of test, all and untested", ways)
    parts = {f"{where}.all.{index}": part for index, part in enumerate(entry.all)}
    if entry.test:
        parts = {f"{where}.test": entry.test}
    tests = tuple(_comparison(part, subjects, here) for here, part in parts.items())
    published = entry.published
    if published and len(tests) == 1:
        expected = tests[0].figure_unit(subjects.units)
        if published.unit != expected:
            raise FieldError(f"{where}.published.unit", repr(expected), published.unit)
    if entry.finding is not None:
        check_finding(entry.finding, len(tests), f"{where}.finding")
    return Claim(
        id=entry.id,
        says=entry.says,
        published=published.value if published else None,
        tests=tests,
        untested=entry.untested,
        ours=ours if entry.ours is None else entry.ours,
        finding=entry.finding,
    )


def _comparison(part: Mapping[str, Any], subjects: Subjects, where: str) -> Comparison:
    require_known(f"{where}.kind", part.get("kind", ""), list(KINDS))
    given = {name: value for name, value in part.items() if name != "kind"}
    test = read(KINDS[part["kind"]], given, where)
    if isinstance(test, Bounded) and len(test.bounds) != 1:
        names = [bound.name for bound in test.bounds]
        raise FieldError(where, f"exactly one of {list(BOUNDS)}", names)
    test = replace(test, case=test.case or subjects.headline)
    if isinstance(test, Measured):
        test = replace(test, is_share=test.metric in subjects.shares)
    known = {"variant": subjects.cases, "metric": subjects.units}
    for what, subjects_known in known.items():
        for field, name in test.named(what):
            if field in given:
                require_known(f"{where}.{field}", name, subjects_known)
    cases = {"case": test.case, **dict(test.named("case", "cases"))}
    # A comparison of a variant with itself is a mistake.
    refuse_repeats(f"{where}: of, over", test.variants)
    refuse_repeats(f"{where}: {', '.join(cases)}", cases.values())
    for variant in test.variants:
        for name, case in cases.items():
            if case not in subjects.cases[variant]:
                raise FieldError(f"{where}.{name}", f"a case that {variant} has", case)
        for case in test.cases:
            if case not in subjects.cases[variant]:
                raise FieldError(where, f"cases that {variant} has", case)
    return test
