"""What is worth telling first: a study's findings, and its largest surprise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.rows import ClaimPartRow, ClaimRow, RatioRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Study, Variant
from analysis.study.claims import Claim
from analysis.study.claims.comparison import Bounded, Comparison
from analysis.study.claims.findings import Finding
from analysis.study.claims.kinds import Measured
from analysis.study.claims.verdicts import HOLDS, NOT_TESTED

Figures = ClaimRow | ClaimPartRow


def written_interval(test: Comparison, figures: Figures) -> str:
    """The interval of what `test` found, as its kind writes one; empty where it has no width."""
    low, high = figures.ci_low, figures.ci_high
    if math.isnan(low) or math.isnan(high) or low == high:
        return ""
    return test.write_interval(figures.measured, low, high, figures.unit)


@dataclass(frozen=True)
class Told:
    """A claim's verdict on one machine, and the comparison whose figures tell it: number `part`,
    from 1. `others` are the verdicts on other machines."""

    claim: Claim
    row: ClaimRow
    part: int
    figures: Figures
    others: tuple[ClaimRow, ...] = ()

    @property
    def test(self) -> Comparison:
        return self.claim.tests[self.part - 1]

    def write(self, value: float) -> str:
        """A figure of the comparison as its kind writes one; empty where there is none."""
        return "" if math.isnan(value) else self.test.write(value, self.figures.unit)

    def interval(self) -> str:
        return written_interval(self.test, self.figures)

    def bound(self) -> str:
        """What the comparison is held against, in words; empty where that is not a bound."""
        if not isinstance(self.test, Bounded):
            return ""
        bound = self.test.bound
        written = self.write(bound.value)
        value = f"{bound.value:g}" if _is_bare(written) else written
        return f"{bound.name.replace('_', ' ')} {value}"

    def counted(self, study: Study) -> str:
        """What the figure is a number of; empty where its unit or sign says enough."""
        test = self.test
        if not _is_bare(self.write(self.figures.measured)):
            return ""
        return study.metrics[test.metric].label if isinstance(test, Measured) else test.title


def _is_bare(figure: str) -> bool:
    """Whether it ends with a digit, so with neither a unit nor a sign."""
    return figure[-1:].isdigit()


@dataclass(frozen=True)
class Slower:
    """A step that is surely slower than the one it comes after."""

    step: Variant
    after: Variant
    row: RatioRow


def findings(facts: StudyFacts) -> list[tuple[Finding, Told]]:
    """The study's findings whose verdict is that of a machine, told by its figures: that of the
    most evidence, if there are several."""
    found = []
    for claim in facts.study.claims:
        rows = {row.machine: row for row in facts.verdicts.by_claim.get(claim.id, [])}
        order = [machine for machine in machines_by_evidence(facts) if machine in rows]
        for machine in order:
            if claim.finding is None or rows[machine].verdict != claim.finding.verdict:
                continue
            others = tuple(rows[other] for other in order if other != machine)
            told = _told(facts, claim, rows[machine], claim.finding.part, others)
            found.append((claim.finding, told))
            break
    return found


def _told(
    facts: StudyFacts, claim: Claim, row: ClaimRow, part: int, others: tuple[ClaimRow, ...] = ()
) -> Told:
    parts = {one.part: one for one in facts.verdicts.parts.get((claim.id, row.machine), [])}
    return Told(claim, row, part, parts.get(part, row), others)


def largest_surprise(facts: StudyFacts, machine: str) -> Told | Slower | None:
    """The claim whose figure lies farthest from what was published, or where nothing was, from the
    bound that it does not meet; else the step that is slowest against the one before it."""
    surprises = [
        (distance, told)
        for claim in facts.study.claims
        for row in facts.verdicts.by_claim.get(claim.id, [])
        if row.machine == machine and row.verdict != NOT_TESTED
        for told in [_told(facts, claim, row, _deciding(facts, row))]
        if (distance := _distance(told)) > 0
    ]
    if surprises:
        return max(surprises, key=lambda pair: pair[0])[1]
    slower = [
        Slower(step, after, row)
        for step in facts.study.with_role("step")
        if step.after is not None
        for after in [facts.study.variant(step.after)]
        if (row := facts.figures.comparison(machine, step, after)) is not None
        and row.verdict == "slower"
    ]
    return min(slower, key=lambda one: one.row.ratio, default=None)


def _deciding(facts: StudyFacts, row: ClaimRow) -> int:
    """The number of the comparison that decides the claim."""
    parts = facts.verdicts.parts.get((row.claim, row.machine))
    return parts[0].part if parts else 1


def _distance(told: Told) -> float:
    """How far the nearer end of the interval is from what was expected, as a logarithm; 0 where
    that lies within, and where nothing was expected."""
    low, high = told.figures.ci_low, told.figures.ci_high
    expected = _expected(told)
    if not (low > 0 and high > 0 and expected > 0):  # NaN is neither
        return 0.0
    return max(math.log(low / expected), math.log(expected / high), 0.0)


def _expected(told: Told) -> float:
    """The published figure, or the bound that is not met; NaN where there is neither."""
    if not math.isnan(told.figures.published):
        return told.figures.published
    if told.figures.verdict == HOLDS or not isinstance(told.test, Bounded):
        return math.nan
    return told.test.bound.value
