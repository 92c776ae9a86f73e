"""Findings of a study, and its largest surprise."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from analysis.base.quantities import INTERVAL
from analysis.site.facts.basis import ANY_HOST, figures_by_run, in_few, is_settled, spread
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.rows import ClaimPartRow, ClaimRow, RatioRow, runs_text
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Study, Variant
from analysis.study.claims import Claim
from analysis.study.claims.comparison import Bounded, Comparison
from analysis.study.claims.findings import Finding
from analysis.study.claims.kinds import MeanMeasured, Measured
from analysis.study.claims.verdicts import HOLDS, NOT_TESTED

Figures = ClaimRow | ClaimPartRow


def written_interval(test: Comparison, figures: Figures) -> str:
    """The interval of `figures` in the format of `test`; empty if it has no width. That of a time
    is named, since tables of times have another."""
    low, high = figures.ci_low, figures.ci_high
    if math.isnan(low) or math.isnan(high) or low == high:
        return ""
    interval = test.write_interval(figures.measured, low, high, figures.unit)
    is_time = type(test) is Measured and figures.unit == "s"
    return f"{interval}, {ANY_HOST}" if is_time and figures.by_run else interval


@dataclass(frozen=True)
class ClaimResult:
    """A claim's verdict on one machine, and its deciding comparison: number `part`, from 1.
    `others` are the verdicts on other machines. `few` is `in 1 run on 1 host` for a figure that may
    not be a headline; else empty."""

    claim: Claim
    row: ClaimRow
    part: int
    figures: Figures
    others: tuple[ClaimRow, ...] = ()
    few: str = ""

    @property
    def test(self) -> Comparison:
        return self.claim.tests[self.part - 1]

    def write(self, value: float) -> str:
        """A figure of the comparison in the format of its kind; empty for NaN."""
        return "" if math.isnan(value) else self.test.write(value, self.figures.unit)

    def interval(self) -> str:
        return written_interval(self.test, self.figures)

    def spread(self) -> str:
        """The interval or, without one, the figures of the runs, with the name of either."""
        interval = self.interval()
        of_mean = " of the mean over hosts" * isinstance(self.test, MeanMeasured)
        named = f"{INTERVAL}{of_mean}: {interval}" if interval else ""
        return spread(self.figures, named, self.write)

    def bound(self) -> str:
        """The bound of the comparison in words; empty without one."""
        if not isinstance(self.test, Bounded):
            return ""
        bound = self.test.bound
        written = self.write(bound.value)
        value = f"{bound.value:g}" if _is_bare(written) else written
        return f"{bound.name.replace('_', ' ')} {value}"

    def counted(self, study: Study) -> str:
        """The counted thing of a bare number; empty for a figure with a unit or sign."""
        test = self.test
        if not _is_bare(self.write(self.figures.measured)):
            return ""
        return study.metrics[test.metric].label if isinstance(test, Measured) else test.title


def _is_bare(figure: str) -> bool:
    """Whether it ends with a digit, so with neither a unit nor a sign."""
    return figure[-1:].isdigit()


@dataclass(frozen=True)
class Slower:
    """A step that is measurably slower than its predecessor."""

    step: Variant
    after: Variant
    row: RatioRow


def findings(facts: StudyFacts) -> list[tuple[Finding, ClaimResult]]:
    """The study's findings that a machine confirms, with the figures of the confirming machine that
    has most evidence. Those from too few runs for a headline come last."""
    found = []
    for claim in facts.study.claims:
        rows = {row.machine: row for row in facts.verdicts.by_claim.get(claim.id, [])}
        order = [machine for machine in machines_by_evidence(facts) if machine in rows]
        confirmed = [
            _result(facts, claim, rows[machine], claim.finding.part)
            for machine in order
            if claim.finding is not None and rows[machine].verdict == claim.finding.verdict
        ]
        if claim.finding is None or not confirmed:
            continue
        result = min(confirmed, key=lambda one: bool(one.few))
        others = tuple(rows[other] for other in order if other != result.row.machine)
        figures = _inverse(result.figures) if claim.finding.inverse else result.figures
        found.append((claim.finding, replace(result, figures=figures, others=others)))
    return sorted(found, key=lambda one: bool(one[1].few))


def _inverse(row: Figures) -> Figures:
    """The row with 1 over its figures."""
    return replace(
        row,
        measured=1 / row.measured,
        published=1 / row.published,
        ci_low=1 / row.ci_high,
        ci_high=1 / row.ci_low,
        by_run=runs_text(1 / one for one in figures_by_run(row)),
    )


def _result(facts: StudyFacts, claim: Claim, row: ClaimRow, part: int) -> ClaimResult:
    parts = {one.part: one for one in facts.verdicts.parts.get((claim.id, row.machine), [])}
    few = in_few(*facts.verdicts.basis(row)) if row.runs else ""
    return ClaimResult(claim, row, part, parts.get(part, row), few=few)


def largest_surprise(facts: StudyFacts, machine: str) -> ClaimResult | Slower | None:
    """The claim whose figure is farthest from the published one or, without one, from the missed
    bound; without such a claim, the step that is slowest relative to its predecessor. Figures from
    too few runs for a headline are left out."""
    surprises = [
        (distance, result)
        for claim in facts.study.claims
        for row in facts.verdicts.by_claim.get(claim.id, [])
        if row.machine == machine and row.verdict != NOT_TESTED
        for result in [_result(facts, claim, row, _deciding(facts, row))]
        if not result.few and (distance := _distance(result)) > 0
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
        and is_settled(row)
    ]
    return min(slower, key=lambda one: one.row.ratio, default=None)


def _deciding(facts: StudyFacts, row: ClaimRow) -> int:
    """The number of the comparison that decides the claim."""
    parts = facts.verdicts.parts.get((row.claim, row.machine))
    return parts[0].part if parts else 1


def _distance(result: ClaimResult) -> float:
    """Distance of the nearer end of the interval from the expectation, as a logarithm; 0 if the
    interval contains it, and without an expectation."""
    low, high = result.figures.ci_low, result.figures.ci_high
    expected = _expected(result)
    if not (low > 0 and high > 0 and expected > 0):  # NaN is neither
        return 0.0
    return max(math.log(low / expected), math.log(expected / high), 0.0)


def _expected(result: ClaimResult) -> float:
    """The published figure, or the missed bound; NaN if there is neither."""
    if not math.isnan(result.figures.published):
        return result.figures.published
    if result.figures.verdict == HOLDS or not isinstance(result.test, Bounded):
        return math.nan
    return result.test.bound.value
