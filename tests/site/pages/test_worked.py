"""One row of the link model, worked through: each step follows from the one before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from analysis.base.errors import FieldError
from analysis.base.quantities import quantity
from analysis.results.model import METRIC
from analysis.site.facts.inputs import Inputs, load_inputs
from analysis.site.facts.predicting import chips
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.model import UNCALIBRATED
from analysis.site.pages.worked import worked_row
from tests.linked import CALIBRATION

VARIANT = "sm_rows"


def steps_of(inputs: Inputs) -> dict[str, list[str]]:
    """The cells of each row of the table by its step."""
    text = str(worked_row(StudyFacts(inputs, CALIBRATION), VARIANT))
    rows = re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)[1:]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    return {name: rest for name, *rest in cells}


def test_the_predicted_time_is_that_of_the_model(calibrated: Inputs) -> None:
    steps = steps_of(calibrated)
    variant = CALIBRATION.variant(VARIANT)
    (chip,) = chips(calibrated).values()
    case = CALIBRATION.shown_case(variant)
    assert steps["predicted time"][1] == quantity(chip.seconds(variant, case), "s")
    (largest,) = (name for name in steps if name.endswith(", the largest"))
    assert steps["predicted time"][0].startswith(steps[largest][1])


def test_a_row_on_the_wire_is_the_sum_of_its_parts(calibrated: Inputs) -> None:
    steps = steps_of(calibrated)
    names = ("data of a row", "headers and framing", "half lines")
    parts = [float(steps[name][1].removesuffix(" B")) for name in names]
    assert float(steps["a row on the wire"][1].removesuffix(" B")) == pytest.approx(
        sum(parts), rel=0.01
    )


def test_a_changed_measurement_changes_the_comparison_only(calibrated: Inputs) -> None:
    summary = calibrated.tables["summary"]
    is_it = (summary["variant"] == VARIANT) & (summary["metric"] == METRIC)
    slower = summary.assign(median=summary["median"].mask(is_it, 2 * summary["median"]))
    before, after = steps_of(calibrated), steps_of(calibrated.with_tables(summary=slower))
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"measured time", "measured vs. predicted"}


def test_without_calibration_a_sentence_says_so(tmp_path: Path) -> None:
    nothing = load_inputs(tmp_path, tmp_path, {CALIBRATION.name: CALIBRATION})
    assert worked_row(StudyFacts(nothing, CALIBRATION), VARIANT) == UNCALIBRATED


def test_a_variant_without_rows_is_an_error(calibrated: Inputs) -> None:
    with pytest.raises(FieldError, match="a `link`"):
        worked_row(StudyFacts(calibrated, CALIBRATION), "copy_engine")
