"""Submissions on the page about hardware: marked, beside measured figures, and harmless."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.results.store.collect import collect
from analysis.results.submit import submission, to_text, with_reach
from analysis.site.facts.comparison import SENT, Comparison
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.hardware import figures_table
from analysis.site.pages.machines import freshness
from analysis.site.pages.page import Page
from analysis.site.pages.staging import Staged
from analysis.site.pages.submissions import (
    machine_parameters,
    physical_machines,
    submitted_machines,
    submitted_reach,
)
from analysis.study import discover
from tests.results.store.submissions import SCRIPT, digested, whole, write
from tests.roots import make_inputs, make_root
from tests.synthetic import write_machine

NAME = "my-box"
MARKED = f"{NAME} (sent)"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    """A measured machine, a sent one with the same figures, and a hostile file."""
    root = make_root(tmp_path_factory.mktemp("root"))
    results = root / "results"
    write_machine(results, "box", discover(root)["copy"], rounds=2, grid="smoke")
    studies = discover(root)
    content = submission(collect(results, studies), studies, "box", NAME)
    content["parameters"] = whole()["parameters"]
    content["machine"] = whole()["machine"] | {"hypervisor": False, "iommu": False}
    folder = results / "submitted"
    folder.mkdir()
    (folder / f"{NAME}.json").write_text(to_text(with_reach(content, whole()["reach"])))
    hostile = whole("hostile")
    hostile["machine"]["gpu"] = SCRIPT
    write(folder, digested(hostile))
    return make_inputs(root)


def page_of(inputs: Inputs) -> Page:
    studies = {name: StudyFacts(inputs, study) for name, study in inputs.studies.items()}
    around: Any = SimpleNamespace(page=SimpleNamespace(url="hardware/"))
    return Page(Staged(inputs, {}, studies, {}, {}, {}), around)


def test_a_sent_machine_is_listed_with_its_file(inputs: Inputs) -> None:
    text = str(submitted_machines(page_of(inputs)))
    assert MARKED in text and f'href="../data/submitted/{NAME}.json"' in text
    assert ">NVIDIA H200</td>" in text and "PCIe 5.0 x16" in text
    assert "14 of 14" in text


def test_its_figures_stand_beside_the_measured_ones(inputs: Inputs) -> None:
    comparison = page_of(inputs).staged.comparison
    text = str(figures_table(comparison))
    assert MARKED in text
    (sent,) = comparison.sent
    (box,) = comparison.machines
    assert sent.kind == SENT and sent in comparison.others(box)
    assert {round(one.value, 3) for one in comparison.ratios(box, sent)} == {1.0}


def test_its_parameters_and_its_reach_are_shown(inputs: Inputs) -> None:
    text = str(machine_parameters(inputs))
    assert MARKED in text and "59.0 GB/s (58.0 to 60.0 GB/s)" in text
    for one in inputs.submissions.accepted.values():
        for given in one.content["parameters"].values():
            given["runs"] = 1
    text = str(machine_parameters(inputs))
    assert "59.0 GB/s (one run)" in text and "58.0" not in text
    text = str(submitted_reach(inputs))
    assert "16.0 GiB" in text and "20.0 GB/s (40.0 GiB)" in text


def test_a_sent_physical_machine_is_the_control(inputs: Inputs) -> None:
    assert physical_machines(inputs) == (
        f"Physical machines: {MARKED}. Without an IOMMU: {MARKED}."
    )


def test_a_refused_one_is_a_line_of_both_pages_and_its_markup_is_text(inputs: Inputs) -> None:
    for text in (str(submitted_machines(page_of(inputs))), freshness(inputs)):
        lines = [line for line in text.splitlines() if "hostile" in line]
        assert len(lines) == 1 and "machine.gpu: expected" in lines[0]
        assert "<script" not in text
    assert "hostile" not in str(figures_table(Comparison(inputs, {})))


def test_a_site_without_submissions_is_unchanged(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root")
    empty = make_inputs(root)
    assert empty.submissions.accepted == {} and empty.left_out == {}
