"""Results that charts and pages cannot be made of: only those of their machine are left out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

import pytest

from analysis.site.charts import study_charts
from analysis.site.charts.theme import Chart
from analysis.site.facts.guarding import guarded, read_left_out, write_left_out
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import build, make_inputs, make_root, text_of
from tests.synthetic import CALLS, COPY, RUN, name_of, write_machine

WRONG = "figures of this test"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_root(tmp_path / "root")
    for machine in ("good-box", "bad-box"):
        for study in (CALLS, COPY):
            write_machine(root / "results", machine, study, rounds=2)
    return root


def dividing(inputs: Inputs) -> list[str]:
    """The machines; ZeroDivisionError with the host times of a study on `bad-box`."""
    rows = inputs.tables["summary"]
    bad = (rows["machine"] == "bad-box") & (rows["study"] == "copy")
    if (bad & (rows["metric"] == "host_time")).any():
        raise ZeroDivisionError("float division by zero")
    return sorted({*rows["machine"] + "/" + rows["study"]})


def test_one_study_of_one_machine_is_left_out_with_file_field_and_reason(
    root: Path, tmp_path: Path
) -> None:
    inputs = make_inputs(root)
    found, used = guarded(inputs, dividing, WRONG)
    assert found == ["bad-box/calls", "good-box/calls", "good-box/copy"]
    assert used.refused == {
        "bad-box/copy": f"bad-box/copy/{name_of(RUN)}.csv: host_time: expected {WRONG},"
        " got ZeroDivisionError: float division by zero"
    }
    (tmp_path / "copy").mkdir()
    write_left_out(used, inputs, tmp_path / "copy")
    assert inputs.without(read_left_out(tmp_path)).refused == used.refused


def test_an_error_with_all_results_is_no_fault_of_theirs(root: Path) -> None:
    def broken(_: Inputs) -> None:
        raise KeyError("typo")

    with pytest.raises(KeyError, match="typo"):
        guarded(make_inputs(root), broken, WRONG)


def test_the_site_is_published_without_what_no_chart_can_be_drawn_of(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root")
    # Scripts must not mistake the last for a property of objects.
    for machine in ("good-box", "bad-box", "constructor"):
        write_machine(root / "results", machine, COPY, rounds=1)

    def failing(facts: StudyFacts) -> Mapping[str, Chart | None]:
        if facts.study.name == "copy":
            dividing(facts.inputs)
        return study_charts(facts)

    with patch("analysis.site.charts.study_charts", failing):
        site = build(root)
    home = text_of(site / "index.html")
    assert "bad-box/copy is left out" in home and "ZeroDivisionError" in home
    assert "good-box/copy is left out" not in home
    assert '"constructor"' in (site / "charts" / "copy" / "steps.json").read_text()
