"""The steps of all committed studies beside their limits: every share is of one clock."""

from __future__ import annotations

import pytest

from analysis.site.facts.basis import is_headline
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.journeys import journey_of
from analysis.site.facts.study_facts import StudyFacts
from tests.repository import STUDIES


@pytest.mark.parametrize("name", STUDIES)
def test_a_share_is_of_the_clock_of_its_journey(committed: Inputs, name: str) -> None:
    facts = StudyFacts(committed, STUDIES[name])
    journey = journey_of(facts)
    if journey is None:
        return
    assert journey.metric in facts.study.metrics_for(*journey.times)
    assert bool(journey.shares) == (journey.limit is not None)
    for variant, share in journey.shares.items():
        row = facts.metric(journey.machine, variant, journey.metric)
        assert row is not None and is_headline(row)
        if journey.limit and journey.limit.variant in facts.study.variants:
            place = journey.machine, variant, journey.limit.variant, journey.metric
            ratio = facts.ratio(*place)
            assert ratio is not None and ratio.ratio == share
