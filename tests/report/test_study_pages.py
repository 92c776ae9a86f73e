"""The page of a study: sections of variants, and the table of what was published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from analysis.derived import ABSENT
from analysis.facts.inputs import load_inputs
from analysis.facts.study_facts import StudyFacts
from analysis.report.fragments import Place
from analysis.report.study_pages import missing, published_table
from analysis.report.variants import sections
from tests.roots import make_inputs, make_root
from tests.synthetic import COPY, write_machine


def test_sections_show_registers_and_spills(measured: StudyFacts, tmp_path: Path) -> None:
    step = measured.study.with_role("step")[1].name
    resources = pd.DataFrame(
        [["copy", step, "sm_90", "gather", 40, 0, 8, 16, 16]],
        columns=measured.inputs.resources.columns,
    )
    facts = StudyFacts(replace(measured.inputs, resources=resources), measured.study)
    page = sections(facts, ["step"], Place(tmp_path, "../"))
    assert "40 registers a thread for sm_90, 32 B of spills" in page


def test_kernels_that_differ_are_told_by_name(measured: StudyFacts, tmp_path: Path) -> None:
    step = measured.study.with_role("step")[1].name
    rows = [
        ["copy", step, "sm_90", symbol, registers, 0, 0, 0, 0]
        for symbol, registers in (("_Z4copyILi1EEvv", 40), ("_Z4copyILi2EEvv", 40), ("fill", 8))
    ]
    columns = measured.inputs.resources.columns
    for shown, said in (
        (rows[:2], "Compiled: 40 registers a thread for sm_90, no spills."),
        (rows, "Compiled: `copy<1>` and `copy<2>` with 40 registers a thread"),
    ):
        resources = pd.DataFrame(shown, columns=columns)
        facts = StudyFacts(replace(measured.inputs, resources=resources), measured.study)
        assert said in sections(facts, ["step"], Place(tmp_path, "../"))


def test_published_table_has_printed_and_measured(measured: StudyFacts) -> None:
    page = published_table(measured)
    assert "1.95 GB/s" in page and "2.10 GB/s" in page and "box" in page


def test_published_table_leaves_out_a_machine_that_has_none_of_it(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write_machine(root / "results", "box", COPY, variants=COPY.with_role("ceiling"))
    facts = StudyFacts(make_inputs(root), COPY)
    assert facts.machines == ["box"]
    page = published_table(facts)
    assert "1.95 GB/s" in page and "box" not in page


def test_what_the_write_up_says_of_every_figure_is_said_once(measured: StudyFacts) -> None:
    page = published_table(measured)
    assert ". ms: mean of ten launches; GB/s: bytes divided by 1024^3, so GiB/s</caption>" in page
    assert ">note<" not in page and page.count("ten launches") == 1


def test_notes_of_single_figures_stand_beside_them(
    measured: StudyFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = [f"chapter {number}" for number in range(len(measured.published))]
    rows = [
        replace(row, note=note) if row.unit_printed == "ms" else row
        for row, note in zip(measured.published, notes, strict=True)
    ]
    monkeypatch.setattr(StudyFacts, "published", rows)
    page = published_table(measured)
    assert ">note<" in page and "<td>chapter 2</td>" in page
    assert "1024^3, so GiB/s</caption>" in page and "ms:" not in page


def test_tables_of_the_code_that_are_missing_are_said_with_why(measured: StudyFacts) -> None:
    assert "table from the code" not in missing(measured)
    tables = measured.inputs.results.parent / "tables"
    folder = tables / "derived" / measured.study.name
    folder.mkdir(parents=True)
    (folder / ABSENT).write_text('{"layout": "x.so: not built; run: <it>"}')
    inputs = load_inputs(tables, measured.inputs.results, tables, measured.inputs.studies)
    page = missing(StudyFacts(inputs, measured.study))
    assert "<code>layout</code>" in page and "x.so: not built; run: &lt;it&gt;" in page


def test_a_variant_is_shown_in_a_case_it_is_usually_measured_in(measured: StudyFacts) -> None:
    for study in measured.inputs.studies.values():
        facts = StudyFacts(measured.inputs, study)
        for variant in study.variants:
            usual = variant.in_grid("default")
            assert not usual or facts.figures.shown_case(variant) in usual
