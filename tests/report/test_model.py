"""What pages say of the model."""

from __future__ import annotations

import re
from pathlib import Path

from analysis.facts.inputs import Inputs
from analysis.facts.study_facts import StudyFacts
from analysis.model.judge import USES
from analysis.report.model import (
    counter_table,
    judgement,
    model_table,
    parameter_table,
    unjudged,
)
from tests.linked import CALIBRATION, GATHER, model_root, true_seconds
from tests.roots import build, drawn_charts, make_inputs, text_of
from tests.synthetic import write_machine


def test_without_calibration_there_is_no_prediction_and_pages_say_so(tmp_path: Path) -> None:
    root = model_root(tmp_path)
    write_machine(root / "results", "box", GATHER, seconds=true_seconds)
    found = make_inputs(root)
    assert found.model.empty and found.model_parameters.empty and found.model_counters.empty
    facts = StudyFacts(found, GATHER)
    assert "model" not in drawn_charts(facts)
    assert "No machine has been calibrated" in model_table(facts)
    assert "No machine has been calibrated" in parameter_table(found)
    assert "No counters" in counter_table(facts)


def test_the_worst_point_is_told_of_the_judged_alone(calibrated: Inputs) -> None:
    page = judgement(StudyFacts(calibrated, GATHER))
    assert ">worst judged</th>" in page and ">worst</th>" not in page


def test_interpolated_and_extrapolated_points_are_counted_apart(calibrated: Inputs) -> None:
    page = judgement(StudyFacts(calibrated, CALIBRATION))
    uses = [use for use in USES if f">{use}<" in page]
    assert uses == ["fitted", "interpolated", "extrapolated"]


def test_what_cannot_be_judged_is_said_with_why(calibrated: Inputs) -> None:
    rows = re.findall(r"<tr>(.*?)</tr>", unjudged(StudyFacts(calibrated, GATHER)), re.DOTALL)
    words = [re.sub(r"(\s*<[^>]*>)+\s*", "|", row).strip("|") for row in rows[1:]]
    by_variant = {row.split("|")[0]: row.split("|", 1)[1] for row in words}
    managed = "every machine|none|the model does not know how it reads host memory"
    assert by_variant["managed"] == managed
    assert by_variant["batch_memcpy"].startswith("every machine|none|the CPU takes part")
    assert by_variant["v0_byte_copy"] == "box|0 of 16|bound by request rate in 16"
    assert "v3_loads_first_again" not in by_variant
    counts = [row.split("|")[2] for row in words]
    assert counts == sorted(counts, key=lambda count: not count.startswith(("none", "0 ")))


def test_one_run_is_said_to_be_one(calibrated: Inputs) -> None:
    assert ">one run<" in parameter_table(calibrated)


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
        assert "model" in drawn_charts(StudyFacts(calibrated, study))
