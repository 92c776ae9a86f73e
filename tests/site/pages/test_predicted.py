"""Predictions on the page: before a machine has measured, and after."""

from __future__ import annotations

import math
from pathlib import Path

from analysis.results.predict import RULES, Predicted
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.predicted import Outcome, outcomes, predictions_text
from analysis.study import discover
from tests.roots import make_inputs, make_root
from tests.synthetic import write_machine


def test_hits_are_counted_among_the_measured(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    study = discover(root)["copy"]
    write_machine(root / "results", "box", study, grid="smoke")
    inputs = make_inputs(root)
    studies = {"copy": StudyFacts(inputs, inputs.studies["copy"])}
    variant = study.with_role("step")[0]
    case = study.shown_case(variant).id
    row = studies["copy"].figures.find("box", variant.name, case, "gpu_time")
    assert row is not None

    def one(seconds: float, name: str = variant.name) -> Predicted:
        rest = ("run", "2026-01-01T00:00:00Z", "commit")
        return Predicted(
            "box", "copy", name, case, "gpu_time", seconds, next(iter(RULES)), 1.0, "model", *rest
        )

    made = [one(row.median * 1.01), one(row.median * 1.2), one(1.0, "gone")]
    found = outcomes(studies, made)
    assert [each.is_measured and each.is_hit for each in found] == [True, False, False]
    text = predictions_text(studies, found)
    assert "1 of 2 measured times (50 %) are within 5 % of their predictions." in text
    assert "Not measured yet: 1." in text
    before = predictions_text(studies, [Outcome(each, math.nan) for each in made])
    assert "None is measured yet." in before
    assert predictions_text(studies, []) == "Nothing has been predicted for a machine yet."
