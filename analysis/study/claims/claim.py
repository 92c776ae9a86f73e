"""Claims of study.yaml, a write-up's and ours, with their tests and recorded bounds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

from pydantic import BaseModel, Field, PrivateAttr, WithJsonSchema, model_validator

from analysis.base.errors import FieldError, refuse_repeats, require_known
from analysis.base.keys import Fault, Name, Sentence, Unique, expects
from analysis.base.quantities import digits, quantity
from analysis.study.claims.kinds import KINDS, Evidence
from analysis.study.claims.verdicts import NOT_TESTED, Figure, NotTested, Outcome, outcome_of

if TYPE_CHECKING:
    from analysis.study.keys import Metric, StudyKeys

    KindName = str
    DataRate = str
else:
    KindName = Literal[tuple(KINDS)]
    DataRate = Literal["B/s", "MB/s", "GB/s", "MiB/s", "GiB/s", "Gbps"]

BOUNDS: Final = ("at_least", "at_most", "within")
BOUND_DIGITS: Final = 12
"""Length of a bound's digest in hex digits."""
Bounds = dict[str, list[str]]
"""Digests of the comparisons of claims, by the id of the claim."""
Counter = Annotated[str, Field(pattern=r"^[a-z]+__[a-z0-9_]+\.sum$")]
Number = Annotated[
    int | float,
    Field(gt=0),
    expects("a number above 0"),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
]
"""A number as study.yaml has it: digests of comparisons distinguish 1 and 1.0."""


class Comparison(BaseModel, extra="forbid", use_attribute_docstrings=True):
    """A kind, its subjects, and the threshold that its figure must meet."""

    kind: KindName
    """Kind of comparison."""
    case: str = ""
    """key=value pairs joined by commas, as in results; the headline case if omitted."""
    in_each: Unique[str] = ()
    """Such cases, in place of `case`: the entry of `all` stands for a comparison in each."""
    of: str = ""
    """The variant of the claim."""
    over: str = ""
    """The baseline."""
    metric: str = ""
    """The metric to compare. If optional, the default is the first time of a whole operation that
    the variants have, but not gpu_time if the CPU works in one of them."""
    at_least: Number | None = None
    """The figure's whole interval must lie at or above this."""
    at_most: Number | None = None
    """The figure's whole interval must lie at or below this."""
    within: Annotated[Number, Field(le=1)] | None = None
    """The figure's whole interval must lie within this margin around the published figure, a share
    of that."""
    by: Literal["time", "rate"] = "time"
    """Compare times (default), or payload rates if the variants' rows differ in size."""
    also: Unique[str] = ()
    """Further cases of a mean or of a choice."""
    over_case: str = ""
    """The case of the baseline."""
    given: Unique[str] = ()
    """Values of the chosen key, as `key=value`. Each of the cases exists with each of them, too."""
    slower: Annotated[Number, Field(gt=1)] | None = None
    """Maximum ratio of its time to the time with the best value."""
    counter: Counter = ""
    """A counter of Nsight Compute, summed over a kernel."""
    per: Counter = ""
    """The counter in the denominator."""
    printed: DataRate = ""
    """The printed unit of the rates."""
    meant: DataRate = ""
    """The true unit of the rates."""
    limit: Number | None = None
    """The limit of the printed rate, in `unit`."""
    unit: DataRate = ""
    """The unit of `limit` and of the printed rate."""
    source: Sentence = ""
    """The source of printed figures, as in the published rows."""

    _metric: Metric | None = PrivateAttr(None)
    _digest: str = PrivateAttr("")

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        kind = KINDS[self.kind]
        given = self.model_fields_set - {"kind", "case", "in_each", *BOUNDS}
        if not kind.needs <= given <= kind.needs | kind.may_have:
            may_have = f" and of {sorted(kind.may_have)}" if kind.may_have else ""
            raise Fault(f"{sorted(kind.needs)}{may_have} for {self.kind}", sorted(given))
        bounds = [name for name in BOUNDS if getattr(self, name) is not None]
        if len(bounds) != kind.is_bounded:
            raise Fault(f"exactly one of {list(BOUNDS)}" if kind.is_bounded else "no bound", bounds)
        return self

    @property
    def variants(self) -> list[str]:
        """The compared variants."""
        return [name for name in (self.of, self.over) if name]

    @property
    def cases(self) -> list[str]:
        """The ids of all its cases."""
        cases = [case for case in (self.case, self.over_case, *self.also) if case]
        return [*cases, *(f"{case},{value}" for case in cases for value in self.given)]

    @property
    def title(self) -> str:
        """The compared variants and metric, in words."""
        plain = " ".join(filter(None, [" over ".join(self.variants), self.metric]))
        values = {*self.case.split(",")}
        other = [value for value in self.over_case.split(",") if value not in values]
        near = f"within {(self.slower or 1) - 1:.0%} of the best"
        return {
            "speedup": f"{plain} by rate" if self.by == "rate" else plain,
            "mean_speedup": f"{plain}, mean of {1 + len(self.also)} cases",
            "between_cases": f"{self.of} over its rate at {','.join(other)}",
            "near_best": f"{plain} {near}, in {1 + len(self.also)} cases",
            "mean_figure": f"{plain}, mean over hosts",
            "counts_per": f"{plain} {self.counter} per {self.per}",
            "counts_over": f"{plain} {self.counter}",
        }.get(self.kind, plain or self.kind)

    def judge(self, evidence: Evidence, published: float | None = None) -> Outcome:
        """The outcome; `published` replaces the figure of the published rows."""
        try:
            figure = KINDS[self.kind].compute(self, evidence)
        except NotTested as reason:
            return Outcome(NOT_TESTED, str(reason), runs=reason.runs)
        if isinstance(figure, Outcome):
            return figure
        if published is not None:
            figure = replace(figure, published=published)
        bound = next((name, value) for name in BOUNDS if (value := getattr(self, name)))
        return outcome_of(figure, *bound)

    def room(self, figure: Figure) -> float:
        """Distance of the interval's nearest end from the bound, as a share of it; negative if that
        end violates it, 0 without a bound and for `within`."""
        if self.at_least:
            return (figure.low - self.at_least) / self.at_least
        return (self.at_most - figure.high) / self.at_most if self.at_most else 0.0

    @property
    def figure_unit(self) -> str:
        """SI base unit of its figure; 1 for ratios, shares and counts."""
        return "1" if self.written_unit in ("x", "%") else self.written_unit

    @property
    def written_unit(self) -> str:
        """The unit in which pages write its figure."""
        return KINDS[self.kind].written or (self._metric.written_unit if self._metric else "1")

    def write(self, value: float) -> str:
        """Its figure as text for pages."""
        return quantity(value, self.written_unit)


class Claim(BaseModel, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True):
    id: Name
    """Names the claim in the ledger and in claims.csv."""
    says: Sentence
    """The claim as one sentence in the words of this project."""
    ours: bool = False
    """Whether this is the project's claim, which is counted separately; by default it is the
    write-up's, if there is one."""
    published: Number | None = None
    """The write-up's figure, in the SI base unit of the comparison. By default it is the same
    comparison of the rows in results/published, if those exist."""
    test: Comparison | None = None
    """The one comparison that decides the claim."""
    all: tuple[Comparison, ...] = ()
    """Comparisons that must all hold: two or more."""
    untested: Sentence = ""
    """Why nothing here tests the claim."""

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
        return tuple(test._digest for test in self.tests)

    @property
    def on_rows(self) -> bool:
        """Whether the published rows alone decide it."""
        return bool(self.tests) and all(KINDS[test.kind].on_rows for test in self.tests)

    @property
    def on_counters(self) -> bool:
        """Whether its verdict needs profiles."""
        return any(KINDS[test.kind].on_counters for test in self.tests)

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

    def write(self, value: float) -> str:
        """A figure as text, in the form of its kind of comparison."""
        return self.tests[0].write(value) if len(self.tests) == 1 else digits(value)


def resolve_claims(
    study: StudyKeys, headline: object, cases: Mapping[str, Collection[str]], where: str
) -> tuple[Claim, ...]:
    """The claims of a study with a comparison for each case; ids of `cases` by variant, and the
    `headline` as study.yaml has it.

    FieldError for the first variant, case, metric or unit that does not fit.
    """
    refuse_repeats(f"{where}: claims", [claim.id for claim in study.claims])
    resolved = []
    for claim in study.claims:
        here = f"{where}: claims.{claim.id}"
        tests: list[Comparison] = []
        for n, part in enumerate(claim.tests):
            place = f"{here}.{f'all.{n}' if claim.all else 'test'}"
            for case in part.in_each or (part.case,):
                test = part.model_copy(update={"case": case or study.headline, "in_each": ()})
                _check_references(test, study, cases, place)
                test._metric = study.metrics.get(test.metric)
                test._digest = _digest(part, case or headline, claim.published, test.figure_unit)
                tests.append(test)
        ours = claim.ours if "ours" in claim.model_fields_set else study.write_up is None
        published = claim.published and float(claim.published)
        changes = {"ours": ours, "test": None, "all": tuple(tests), "published": published}
        resolved.append(claim.model_copy(update=changes))
    return tuple(resolved)


def _check_references(
    test: Comparison, study: StudyKeys, cases: Mapping[str, Collection[str]], where: str
) -> None:
    if test.metric:
        require_known(f"{where}.metric", test.metric, study.metrics)
    # A comparison of a variant or a case with itself is a mistake.
    refuse_repeats(f"{where}: of, over", test.variants)
    refuse_repeats(f"{where}: cases", test.cases)
    for variant in test.variants:
        require_known(f"{where}: of, over", variant, cases)
        if lacking := [named for named in test.cases if named not in cases[variant]]:
            raise FieldError(where, f"cases that {variant} has", lacking[0])


def _digest(part: Comparison, case: object, published: float | None, unit: str) -> str:
    """The digest of a comparison in a case and of the `published` figure, as in study.yaml."""
    written = part.model_dump(exclude_unset=True, exclude={"in_each"}) | {"case": case}
    printed = published and {"value": published, "unit": unit}
    text = json.dumps([[written], printed], sort_keys=True)
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
