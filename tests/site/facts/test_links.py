"""Large copies over other links, beside public figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.site.facts.inputs import Inputs
from analysis.site.facts.links import calibrated_machine, held_against
from analysis.site.facts.study_facts import StudyFacts
from tests.linked import TRUE


def test_public_rates_stand_beside_what_the_model_allows(calibrated: Inputs) -> None:
    studies = {name: StudyFacts(calibrated, study) for name, study in calibrated.studies.items()}
    assert calibrated_machine(studies) is None and held_against(studies) == []
    machines = {"box": {**calibrated.machines["box"], "pcie_generation": 5, "pcie_width": 16}}
    inputs = replace(calibrated, machines=machines)
    studies = {name: StudyFacts(inputs, study) for name, study in inputs.studies.items()}
    known = calibrated_machine(studies)
    assert known is not None and known.link.name == "pcie5_x16"
    efficiency = known.measured_values()["efficiency"]
    assert efficiency == pytest.approx(TRUE.link_rate / known.link.packet_rate, rel=0.01)
    held = held_against(studies)
    assert {one.link.name for one in held if one.is_calibrated} == {"pcie5_x16"}
    for one in held:
        assert one.predicted <= one.link.packet_rate
        assert one.difference == pytest.approx(one.published.rate / one.predicted - 1)
