"""Large copies over other links, beside public figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from kernels.link_calibration.other_links import (
    calibrated_machine,
    held_against,
    predicted_links,
    stated_links,
)
from tests.linked import TRUE


def test_public_rates_stand_beside_what_the_model_allows(calibrated: Inputs) -> None:
    study = next(iter(calibrated.studies.values()))
    unknown = StudyFacts(calibrated, study)
    assert calibrated_machine(unknown) is None and held_against(unknown) == []
    assert not predicted_links(unknown).rows and stated_links(unknown).rows
    host = {**calibrated.machines["box"], "pcie_generation": 5, "pcie_width": 16}
    facts = StudyFacts(replace(calibrated, machines={"box": host}), study)
    known = calibrated_machine(facts)
    assert known is not None and known.link.name == "pcie5_x16"
    expected = TRUE.link_rate / known.link.packet_rate
    assert known.values["efficiency"] == pytest.approx(expected, rel=0.01)
    held = held_against(facts)
    assert {one.link.name for one in held if one.is_calibrated} == {"pcie5_x16"}
    for one in held:
        assert one.predicted <= one.link.packet_rate
        assert one.difference == pytest.approx(one.published.rate / one.predicted - 1)
    assert len(predicted_links(facts).rows) == len(held)
