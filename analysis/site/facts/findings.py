"""Findings of a study, and results of its claims."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from analysis.base.quantities import INTERVAL
from analysis.site.facts.basis import figures_by_run, in_few, spread
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.rows import ClaimPartRow, ClaimRow, runs_text
from analysis.site.facts.study_facts import StudyFacts
from analysis.study.claims import Claim
from analysis.study.claims.claim import Finding
from analysis.study.claims.kinds import Comparison, MeanMeasured

Figures = ClaimRow | ClaimPartRow


def written_interval(test: Comparison, figures: Figures) -> str:
    """The interval of `figures` in the format of `test`; empty if it has no width."""
    low, high = figures.ci_low, figures.ci_high
    if math.isnan(low) or math.isnan(high) or low == high:
        return ""
    return test.write_interval(figures.measured, low, high, figures.unit)


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


def claim_result(facts: StudyFacts, claim: Claim) -> ClaimResult | None:
    """The claim's first comparison on the machine with most evidence; None without a verdict."""
    rows = {row.machine: row for row in facts.verdicts.by_claim.get(claim.id, [])}
    machine = next((one for one in machines_by_evidence(facts) if one in rows), None)
    return None if machine is None else _result(facts, claim, rows[machine], 1)


def _result(facts: StudyFacts, claim: Claim, row: ClaimRow, part: int) -> ClaimResult:
    parts = {one.part: one for one in facts.verdicts.parts.get((claim.id, row.machine), [])}
    few = in_few(*facts.verdicts.basis(row)) if row.runs else ""
    return ClaimResult(claim, row, part, parts.get(part, row), few=few)
