"""Committed predictions for a machine, beside what it measured later."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.base.equivalence import EQUAL_WITHIN
from analysis.results.predict import Predicted, read_predictions
from analysis.site.facts.study_facts import StudyFacts


@dataclass(frozen=True)
class Outcome:
    """A prediction and the measured time in s, NaN while there is none."""

    predicted: Predicted
    measured: float

    @property
    def is_measured(self) -> bool:
        return not math.isnan(self.measured)

    @property
    def error(self) -> float:
        """Measured over predicted time, minus 1."""
        return self.measured / self.predicted.seconds - 1

    @property
    def is_hit(self) -> bool:
        return abs(self.error) <= EQUAL_WITHIN


def outcomes(
    studies: Mapping[str, StudyFacts], predictions: Sequence[Predicted] | None = None
) -> list[Outcome]:
    """All predictions for studies that exist, the committed ones by default."""
    made = read_predictions() if predictions is None else predictions
    return [Outcome(one, _measured(studies, one)) for one in made if one.study in studies]


def _measured(studies: Mapping[str, StudyFacts], one: Predicted) -> float:
    row = studies[one.study].figures.find(one.machine, one.variant, one.case, one.metric)
    return math.nan if row is None or row.stale else row.median
