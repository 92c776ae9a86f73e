"""Results of claims on the machine with most evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

from analysis.base.quantities import INTERVAL
from analysis.site.facts.basis import in_few, spread
from analysis.site.facts.journeys import machines_by_evidence
from analysis.site.facts.rows import ClaimPartRow, ClaimRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.study.claims import Claim
from analysis.study.claims.comparison import Comparison
from analysis.study.claims.kinds import MeanMeasured

Figures = ClaimRow | ClaimPartRow


@dataclass(frozen=True)
class ClaimResult:
    """A claim's verdict on one machine, and the figures of its first comparison. `few` is `in 1 run
    on 1 host` for a figure that may not be a headline; else empty."""

    claim: Claim
    row: ClaimRow
    figures: Figures
    few: str = ""

    @property
    def test(self) -> Comparison:
        return self.claim.tests[0]

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


def claim_result(facts: StudyFacts, claim: Claim) -> ClaimResult | None:
    """The claim's first comparison on the machine with most evidence; None without a verdict."""
    rows = {row.machine: row for row in facts.verdicts.by_claim.get(claim.id, [])}
    row = next((rows[one] for one in machines_by_evidence(facts) if one in rows), None)
    if row is None:
        return None
    parts = {one.part: one for one in facts.verdicts.parts.get((claim.id, row.machine), [])}
    few = in_few(*facts.verdicts.basis(row)) if row.runs else ""
    return ClaimResult(claim, row, parts.get(1, row), few)


def written_interval(test: Comparison, figures: Figures) -> str:
    """The interval of `figures` in the format of `test`; empty if it has no width."""
    low, high = figures.ci_low, figures.ci_high
    if math.isnan(low) or math.isnan(high) or low == high:
        return ""
    return test.write_interval(figures.measured, low, high, figures.unit)
