"""The calibration's rows and expected bytes, and large copies beside public figures."""

from __future__ import annotations

from dataclasses import replace

from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.toolchain.modules import load_python
from kernels.link_calibration import page_tables
from tests.repository import STUDIES

WORKLOADS = load_python(STUDIES["link_calibration"], "workload")
POOL = 4096


def test_public_rates_stand_beside_what_the_model_allows(calibrated: Inputs) -> None:
    study = STUDIES["link_calibration"]
    assert not page_tables.predicted_links(StudyFacts(calibrated, study)).rows  # unknown link
    host = {**calibrated.machines["box"], "pcie_generation": 5, "pcie_width": 16}
    facts = StudyFacts(replace(calibrated, machines={"box": host}), study)
    rows = page_tables.predicted_links(facts).rows
    assert {row[5] for row in rows} == {"measured here", "refuted", "not refuted"}
    assert {row[0] for row in rows if row[5] == "measured here"} == {"PCIe 5.0 x16"}
    assert all(rate <= link.packet_rate for link, _, rate in page_tables.predictions(facts))
