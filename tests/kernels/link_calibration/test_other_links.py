"""Large copies over other links, beside public figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from kernels.link_calibration.page_tables import (
    calibrated_chip,
    predicted_links,
    predictions,
    stated_links,
)
from tests.linked import TRUE


def test_public_rates_stand_beside_what_the_model_allows(calibrated: Inputs) -> None:
    study = next(iter(calibrated.studies.values()))
    unknown = StudyFacts(calibrated, study)
    assert calibrated_chip(unknown) is None and predictions(unknown) == []
    assert not predicted_links(unknown).rows and stated_links(unknown).rows
    host = {**calibrated.machines["box"], "pcie_generation": 5, "pcie_width": 16}
    facts = StudyFacts(replace(calibrated, machines={"box": host}), study)
    known = calibrated_chip(facts)
    assert known is not None and known[1].name == "pcie5_x16"
    assert known[0].parameters.link_rate == pytest.approx(TRUE.link_rate, rel=0.01)
    held = predictions(facts)
    shown = predicted_links(facts).rows
    assert {row[0] for row in shown if row[5] == "measured here"} == {known[1].title}
    assert all(predicted <= link.packet_rate for link, _, predicted in held)
    assert len(shown) == len(held)
