"""Predictions for other links, beside measurements on the calibrated machine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.results.model.hardware import read_links
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.links import Calibrated, LinkRate, link_rates
from analysis.site.facts.study_facts import StudyFacts
from tests.linked import SMS, TRUE


def rates(inputs: Inputs) -> list[LinkRate]:
    return link_rates({name: StudyFacts(inputs, study) for name, study in inputs.studies.items()})


def test_efficiency_is_a_share_of_the_packet_rate() -> None:
    link = next(link for link in read_links() if link.name == "pcie5_x16")
    values = Calibrated("box", SMS, TRUE, link).measured_values()
    assert values == {
        "efficiency": pytest.approx(TRUE.link_rate / link.packet_rate),
        "latency": TRUE.latency,
    }


def test_only_fresh_figures_are_shown_beside_predictions(calibrated: Inputs) -> None:
    machines = {"box": {**calibrated.machines["box"], "pcie_generation": 5, "pcie_width": 16}}
    inputs = replace(calibrated, machines=machines)
    measured = [one.variant.name for one in rates(inputs) if one.is_measured]
    assert "v3_loads_first" in measured and len(set(measured)) == len(measured)
    is_step = inputs.tables["summary"]["variant"] == "v3_loads_first"
    stale = inputs.with_tables(summary=inputs.tables["summary"].assign(stale=is_step.astype(int)))
    left = [one.variant.name for one in rates(stale) if one.is_measured]
    assert left == [name for name in measured if name != "v3_loads_first"]
