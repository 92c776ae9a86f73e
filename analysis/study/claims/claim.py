"""Claims of study.yaml, a write-up's and ours, with their tests and recorded bounds."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from analysis.base.errors import FieldError, refuse_repeats, require_known
from analysis.base.keys import KEYS, Fault, Name, Positive, Sentence
from analysis.base.quantities import digits
from analysis.study.claims.kinds import KINDS, Comparison, OfMetric

if TYPE_CHECKING:
    from analysis.study.description import Metric

    AnyKind = Comparison
else:
    AnyKind = Annotated[reduce(or_, KINDS.values()), Field(discriminator="kind")]

BOUND_DIGITS: Final = 12
"""Length of a bound's digest in hex digits."""
Bounds = dict[str, list[str]]
"""Digests of the comparisons of claims, by the id of the claim."""


@dataclass(frozen=True, kw_only=True, config=KEYS)
class Published:
    value: Positive
    """The figure."""
    unit: Literal["s", "B", "J", "1", "B/s"]
    """Its SI base unit; 1 for ratios and shares."""


@dataclass(frozen=True, kw_only=True, config=KEYS)
class ClaimKeys:
    id: Name
    """Names the claim in the ledger and in claims.csv."""
    says: Sentence
    """The claim as one sentence in the words of this project."""
    ours: bool | None = None
    """Whether this is the project's claim, which is counted separately; by default it is the
    write-up's, if there is one."""
    published: Published | None = None
    """The write-up's figure, in the unit of the comparison. By default it is the same comparison of
    the rows in results/published, if those exist."""
    test: AnyKind | None = None
    """The one comparison that decides the claim."""
    all: tuple[AnyKind, ...] = ()
    """Comparisons that must all hold: two or more."""
    untested: Sentence = ""
    """Why nothing here tests the claim."""

    @model_validator(mode="after")
    def _has_one_way(self) -> Self:
        ways = [way for way in ("all", "test", "untested") if getattr(self, way)]
        if len(ways) != 1:
            raise Fault("exactly one of test, all and untested", ways)
        if self.all and len(self.tests) < 2:
            raise Fault("two comparisons or more under all", len(self.tests))
        return self

    @property
    def tests(self) -> list[Comparison]:
        """Its comparisons, one for each of the cases under `in_each`."""
        return [
            part.model_copy(update={"case": case, "in_each": ()})
            for part in (self.all or filter(None, [self.test]))
            for case in part.in_each or (part.case,)
        ]


@dataclasses.dataclass(frozen=True)
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
        pairs = list(zip(self.tests, self.bounds, strict=True))
        return {
            name: frozenset(digest for test, digest in pairs if name in test.variants)
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


def resolve_claims(
    entries: Sequence[ClaimKeys],
    written: Mapping[str, Any],
    cases: Mapping[str, Collection[str]],
    metrics: Mapping[str, Metric],
    headline: str,
    where: str,
) -> tuple[Claim, ...]:
    """The claims of the study.yaml that has the content `written`: ids of `cases` by variant.

    FieldError for the first variant, case, metric or unit that does not fit.
    """
    refuse_repeats(f"{where}: claims", [entry.id for entry in entries])
    bounds = digests(written)
    claims = []
    for entry in entries:
        here = f"{where}: claims.{entry.id}"
        places = (
            [f"{here}.test"]
            if entry.test
            else [
                f"{here}.all.{index}"
                for index, part in enumerate(entry.all)
                for _ in part.in_each or (1,)
            ]
        )
        tests = tuple(
            _resolved(part, cases, metrics, headline, place)
            for place, part in zip(places, entry.tests, strict=True)
        )
        units = {name: metric.unit for name, metric in metrics.items()}
        if entry.published and len(tests) == 1:
            expected = tests[0].figure_unit(units)
            if entry.published.unit != expected:
                raise FieldError(f"{here}.published.unit", repr(expected), entry.published.unit)
        claims.append(
            Claim(
                id=entry.id,
                says=entry.says,
                published=entry.published.value if entry.published else None,
                tests=tests,
                untested=entry.untested,
                ours=written.get("write_up") is None if entry.ours is None else entry.ours,
                bounds=bounds.get(entry.id, ()),
            )
        )
    return tuple(claims)


def _resolved(
    test: Comparison,
    cases: Mapping[str, Collection[str]],
    metrics: Mapping[str, Metric],
    headline: str,
    where: str,
) -> Comparison:
    """The comparison in the headline case, unless it names another; its references are checked."""
    test = test.model_copy(update={"case": test.case or headline})
    for key in ("of", "over"):
        if hasattr(test, key):
            require_known(f"{where}.{key}", getattr(test, key), cases)
    if test.metric_name:
        require_known(f"{where}.metric", test.metric_name, metrics)
    # A comparison of a variant with itself is a mistake.
    refuse_repeats(f"{where}: of, over", test.variants)
    refuse_repeats(f"{where}: {', '.join(test.named_cases)}", test.named_cases.values())
    for variant in test.variants:
        for key, case in test.named_cases.items():
            if case not in cases[variant]:
                raise FieldError(f"{where}.{key}", f"a case that {variant} has", case)
        for case in test.cases:
            if case not in cases[variant]:
                raise FieldError(where, f"cases that {variant} has", case)
    if isinstance(test, OfMetric) and metrics[test.metric].share:
        test.write_as_share()
    return test


# A threshold that was chosen after looking at a run would fit that run. So a run names the bounds
# as they stood when it began, and a claim is judged by the runs that name its bound. A claim may be
# divided or joined with another: its comparisons stay named, unless one was dropped.


def digests(study: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Digests of the comparisons of every tested claim in a study.yaml, by the claim's id.

    A digest covers the compared variants, the case and the bound, but not the claim's sentence.
    """
    headline = {"case": study.get("headline")}
    found = {}
    for claim in study.get("claims") or []:
        parts = [claim["test"]] if "test" in claim else claim.get("all", [])
        in_cases = [one for part in parts for one in _by_case(headline | part)]
        if in_cases:
            published = claim.get("published")
            found[claim["id"]] = tuple(_digest(part, published) for part in in_cases)
    return found


def _by_case(part: Mapping[str, Any]) -> list[dict[str, Any]]:
    """`part` in each of the cases under its `in_each`; alone without that key."""
    shared = {key: value for key, value in part.items() if key != "in_each"}
    return [shared | {"case": case} for case in part.get("in_each", [part["case"]])]


def _digest(part: Mapping[str, Any], published: object) -> str:
    text = json.dumps([[part], published], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:BOUND_DIGITS]


def still_named(recorded: Bounds, current: Collection[str]) -> frozenset[str]:
    """The digests that a run recorded, without those of claims that have changed since.

    A claim has changed where one of its comparisons is in no claim of today; `current` has the
    digests of these. Else the failing half of a claim could be dropped to keep the other.
    """
    known = frozenset(current)
    return frozenset(
        digest for group in recorded.values() if known.issuperset(group) for digest in group
    )
