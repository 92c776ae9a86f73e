"""The clocks of all committed figures: what stands side by side is by one clock, or names it."""

from __future__ import annotations

import pytest

from analysis.site.facts.inputs import Inputs
from analysis.site.facts.journeys import journey_of
from analysis.site.facts.study_facts import StudyFacts
from tests.repository import STUDIES


@pytest.fixture(scope="module")
def facts(committed: Inputs) -> dict[str, StudyFacts]:
    """All committed results, by study."""
    return {name: StudyFacts(committed, study) for name, study in STUDIES.items()}


@pytest.mark.parametrize("name", STUDIES)
def test_a_journey_is_by_one_clock(facts: dict[str, StudyFacts], name: str) -> None:
    one = facts[name]
    journey = journey_of(one)
    if journey is None:
        return
    assert {time.metric for time in journey.measured} == {journey.metric}
    assert journey.metric in one.study.metrics_for(*(step.variant for step in journey.steps))
    limit = journey.limit
    if limit is not None and limit.kind in ("ceiling", "reference") and limit.variant is not None:
        for step in (step for step in journey.steps if step.share is not None):
            row = one.figures.ratio(journey.machine, step.variant, limit.variant, journey.metric)
            assert row is not None and row.ratio == step.share
