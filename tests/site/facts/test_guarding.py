"""Results that charts and pages cannot be made of: only those of their machine are left out."""

from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

import pytest

from analysis.site.charts import draw_study, study_charts
from analysis.site.charts.theme import Chart
from analysis.site.facts.guarding import guarded, read_left_out, write_left_out
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import make_inputs, make_root
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


def test_one_study_of_a_machine_is_left_out_with_a_reason(root: Path, tmp_path: Path) -> None:
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
    # An error with all results is no fault of theirs.
    with pytest.raises(KeyError, match="typo"):
        guarded(inputs, lambda _: dict[str, str]()["typo"], WRONG)


def test_charts_are_drawn_without_what_none_can_be_drawn_of(root: Path, tmp_path: Path) -> None:
    def failing(facts: StudyFacts) -> Mapping[str, Chart | None]:
        dividing(facts.inputs)
        return {"steps": study_charts(facts)["steps"]}

    with patch("analysis.site.charts.study_charts", failing):
        draw_study(make_inputs(root), "copy", tmp_path / "copy")
    assert [*read_left_out(tmp_path)] == ["bad-box/copy"]
    assert (tmp_path / "copy" / "steps.json").exists()
