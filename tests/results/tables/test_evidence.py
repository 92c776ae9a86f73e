"""Evidence that is missing, in contrast to what a machine cannot give."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.results.collect import collect
from analysis.results.tables.evidence import MachineResults, evidence_by_machine
from analysis.study.claims.verdicts import MISSING, Missing, NotTested
from tests.study.claims.studies import NO_MODEL
from tests.synthetic import COPY, STUDIES, write_machine


@pytest.fixture
def results(tmp_path: Path) -> MachineResults:
    write_machine(tmp_path, "box", COPY)
    found = collect(tmp_path, STUDIES)
    published = found.published[COPY.name]
    nothing = NO_MODEL.assign(named=None)
    return evidence_by_machine(COPY, published, found.samples, NO_MODEL, nothing)["box"]


def test_a_prediction_that_is_absent_is_missing_evidence(results: MachineResults) -> None:
    with pytest.raises(Missing, match=f"{MISSING}no model prediction"):
        results.predicted_seconds("vectors", COPY.headline, "")


def test_a_case_that_was_not_measured_is_missing_evidence(results: MachineResults) -> None:
    with pytest.raises(Missing, match=f"{MISSING}vectors has not been measured in this case"):
        results.visits("vectors", "batch=9", "")


def test_a_stale_result_is_none(results: MachineResults) -> None:
    stale = MachineResults(
        COPY, results.samples.assign(stale=True), results.published, results.model, results.counted
    )
    with pytest.raises(NotTested, match="measured with other code: vectors") as reason:
        stale.visits("vectors", COPY.headline, "gpu_time")
    assert not isinstance(reason.value, Missing)
