"""Claims of study.yaml, a write-up's and ours, with their tests and recorded bounds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, Field, PrivateAttr, model_validator

from analysis.base.errors import FieldError, refuse_repeats, require_known
from analysis.base.keys import Fault, Name, Positive, Sentence
from analysis.base.quantities import digits
from analysis.study.claims.kinds import Comparison

if TYPE_CHECKING:
    from analysis.study.description import Metric

BOUND_DIGITS: Final = 12
"""Length of a bound's digest in hex digits."""
Bounds = dict[str, list[str]]
"""Digests of the comparisons of claims, by the id of the claim."""


class Published(BaseModel, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True):
    value: Positive
    """The figure."""
    unit: Literal["s", "B", "J", "1", "B/s"]
    """Its SI base unit; 1 for ratios and shares."""


class Claim(BaseModel, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True):
    id: Name
    """Names the claim in the ledger and in claims.csv."""
    says: Sentence
    """The claim as one sentence in the words of this project."""
    ours: bool = False
    """Whether this is the project's claim, which is counted separately; by default it is the
    write-up's, if there is one."""
    printed: Annotated[Published | None, Field(alias="published")] = None
    """The write-up's figure, in the unit of the comparison. By default it is the same comparison of
    the rows in results/published, if those exist."""
    test: Comparison | None = None
    """The one comparison that decides the claim."""
    all: tuple[Comparison, ...] = ()
    """Comparisons that must all hold: two or more."""
    untested: Sentence = ""
    """Why nothing here tests the claim."""

    _bounds: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _has_one_way(self) -> Self:
        ways = [way for way in ("all", "test", "untested") if getattr(self, way)]
        if len(ways) != 1:
            raise Fault("exactly one of test, all and untested", ways)
        if self.all and (count := sum(len(part.in_each) or 1 for part in self.all)) < 2:
            raise Fault("two comparisons or more under all", count)
        return self

    @property
    def tests(self) -> tuple[Comparison, ...]:
        """Its comparisons: all of them must hold."""
        return self.all or ((self.test,) if self.test else ())

    @property
    def bounds(self) -> tuple[str, ...]:
        """The digest of each of `tests`: compared variants, case and bound, but no sentence.

        A threshold that was chosen after looking at a run would fit that run. So a run names the
        bounds as they stood when it began, and a claim is judged by the runs that name its bound.
        """
        return self._bounds

    @property
    def published(self) -> float | None:
        """The write-up's figure in SI base units, None if study.yaml has none."""
        return self.printed.value if self.printed else None

    @property
    def on_rows(self) -> bool:
        """Whether the published rows alone decide it."""
        return bool(self.tests) and all(test.about_kind.on_rows for test in self.tests)

    @property
    def on_counters(self) -> bool:
        """Whether its verdict needs profiles."""
        return any(test.about_kind.on_counters for test in self.tests)

    @property
    def variants(self) -> list[str]:
        """Every variant that the tests compare, in the order of the tests."""
        return list(dict.fromkeys(name for test in self.tests for name in test.variants))

    @property
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
    claims: Sequence[Claim],
    written: Mapping[str, Any],
    cases: Mapping[str, Collection[str]],
    metrics: Mapping[str, Metric],
    headline: str,
    where: str,
) -> tuple[Claim, ...]:
    """The claims of the study.yaml that has the content `written`, with a comparison for each case
    and the bounds; ids of `cases` by variant.

    FieldError for the first variant, case, metric or unit that does not fit.
    """
    refuse_repeats(f"{where}: claims", [claim.id for claim in claims])
    bounds = digests(written)
    resolved = []
    for claim in claims:
        here = f"{where}: claims.{claim.id}"
        places = [f"all.{index}" for index in range(len(claim.all))] or ["test"]
        tests = [
            _resolved(part, case, cases, metrics, f"{here}.{place}")
            for place, part in zip(places, claim.tests, strict=False)
            for case in part.in_each or (part.case or headline,)
        ]
        if claim.printed and len(tests) == 1:
            unit = tests[0].figure_unit({name: metric.unit for name, metric in metrics.items()})
            if claim.printed.unit != unit:
                raise FieldError(f"{here}.published.unit", repr(unit), claim.printed.unit)
        ours = claim.ours if "ours" in claim.model_fields_set else not written.get("write_up")
        claim = claim.model_copy(update={"ours": ours, "test": None, "all": tuple(tests)})
        claim._bounds = bounds.get(claim.id, ())
        resolved.append(claim)
    return tuple(resolved)


def _resolved(
    test: Comparison,
    case: str,
    cases: Mapping[str, Collection[str]],
    metrics: Mapping[str, Metric],
    where: str,
) -> Comparison:
    """The comparison in a case, once its references are checked."""
    test = test.model_copy(update={"case": case, "in_each": ()})
    if test.metric:
        require_known(f"{where}.metric", test.metric, metrics)
    # A comparison of a variant or a case with itself is a mistake.
    refuse_repeats(f"{where}: of, over", test.variants)
    refuse_repeats(f"{where}: cases", test.cases)
    for variant in test.variants:
        require_known(f"{where}: of, over", variant, cases)
        if lacking := [named for named in test.cases if named not in cases[variant]]:
            raise FieldError(where, f"cases that {variant} has", lacking[0])
    if test.kind in ("figure", "mean_figure") and metrics[test.metric].share:
        test.write_as_share()
    return test


def digests(study: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Digests of the comparisons of every tested claim in a study.yaml, by the claim's id."""
    found = {}
    for claim in study.get("claims") or []:
        parts = [claim["test"]] if "test" in claim else claim.get("all", [])
        texts = [
            json.dumps([[part | {"case": case}], claim.get("published")], sort_keys=True)
            for part in ({**one} for one in parts)
            for case in part.pop("in_each", [part.get("case", study.get("headline"))])
        ]
        if texts:
            hashes = (hashlib.sha256(text.encode()).hexdigest() for text in texts)
            found[claim["id"]] = tuple(digest[:BOUND_DIGITS] for digest in hashes)
    return found


def still_named(recorded: Bounds, current: Collection[str]) -> frozenset[str]:
    """The digests that a run recorded, without those of claims that have changed since.

    A claim has changed where one of its comparisons is in no claim of today; `current` has the
    digests of these. Else the failing half of a claim could be dropped to keep the other.
    """
    known = frozenset(current)
    return frozenset(
        digest for group in recorded.values() if known.issuperset(group) for digest in group
    )
