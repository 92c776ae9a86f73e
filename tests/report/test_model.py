"""What pages say of the model."""

from __future__ import annotations

from pathlib import Path

from analysis.charts import study_charts
from analysis.facts.inputs import Inputs
from analysis.facts.study_facts import StudyFacts
from analysis.report.model import counter_table, judgement, model_table, parameter_table
from tests.linked import CALIBRATION, GATHER, model_root, true_seconds
from tests.roots import build, make_inputs, text_of
from tests.synthetic import write_machine


def test_without_calibration_there_is_no_prediction_and_pages_say_so(tmp_path: Path) -> None:
    root = model_root(tmp_path)
    write_machine(root / "results", "box", GATHER, seconds=true_seconds)
    found = make_inputs(root)
    assert found.model.empty and found.model_parameters.empty and found.model_counters.empty
    facts = StudyFacts(found, GATHER)
    assert "model" not in study_charts(facts)
    assert "No machine has been calibrated" in model_table(facts)
    assert "No machine has been calibrated" in parameter_table(found)
    assert "No counters" in counter_table(facts)


def test_the_worst_point_is_told_of_the_judged_alone(calibrated: Inputs) -> None:
    page = judgement(StudyFacts(calibrated, GATHER))
    assert ">worst judged</th>" in page and ">worst</th>" not in page


def test_counters_stand_beside_what_was_predicted(calibrated: Inputs) -> None:
    assert "v3_loads_first" in counter_table(StudyFacts(calibrated, GATHER))


def test_pages_show_the_model(calibrated: Inputs, calibrated_root: Path) -> None:
    site = build(calibrated_root)
    gather = text_of(site / "studies" / GATHER.name / "index.html")
    assert "times the next term" in gather and "counted against predicted" in gather
    calibration = text_of(site / "studies" / CALIBRATION.name / "index.html")
    assert "effective rate of the link" in calibration
    assert "within 3 %" in calibration
    for study in (GATHER, CALIBRATION):
        assert "model" in study_charts(StudyFacts(calibrated, study))
