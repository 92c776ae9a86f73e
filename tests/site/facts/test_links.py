"""Large copies over other links, beside public figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.site.facts.inputs import Inputs
from analysis.site.facts.links import calibrated_machine, held_against
from tests.linked import TRUE


def test_public_rates_stand_beside_what_the_model_allows(calibrated: Inputs) -> None:
    assert calibrated_machine(calibrated) is None and held_against(calibrated) == []
    machines = {"box": {**calibrated.machines["box"], "pcie_generation": 5, "pcie_width": 16}}
    inputs = replace(calibrated, machines=machines)
    known = calibrated_machine(inputs)
    assert known is not None and known.link.name == "pcie5_x16"
    efficiency = known.measured_values()["efficiency"]
    assert efficiency == pytest.approx(TRUE.link_rate / known.link.packet_rate, rel=0.01)
    held = held_against(inputs)
    assert {one.link.name for one in held if one.is_calibrated} == {"pcie5_x16"}
    for one in held:
        assert one.predicted <= one.link.packet_rate
        assert one.difference == pytest.approx(one.published.rate / one.predicted - 1)
