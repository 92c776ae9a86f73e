"""A study's Python as a package with a unique name."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from analysis.study import Study
from analysis.toolchain.modules import load_module, load_python
from tests.measure.studies import write_study
from tests.synthetic import COPY


def study_named(folder: Path, **files: str) -> Study:
    study = write_study(folder, {"name": "one"})
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return study


def test_files_of_a_study_import_each_other_once(tmp_path: Path) -> None:
    study = study_named(tmp_path / "pair", other="KEPT = []\n", charts="from .other import KEPT\n")
    charts, other = load_python(study, "charts"), load_python(study, "other")
    assert charts.KEPT is other.KEPT
    assert load_python(study, "other") is other


def test_no_study_hides_a_module_of_the_standard_library(tmp_path: Path) -> None:
    before = dict(sys.modules)
    study = study_named(tmp_path / "statistics", colorsys="MINE = True\n")
    assert load_python(study, "colorsys").MINE
    assert sys.modules["statistics"] is statistics
    added = set(sys.modules) - set(before)
    assert added and all(name.startswith("_study_statistics_") for name in added)


def test_studies_of_one_name_in_two_folders_are_distinct(tmp_path: Path) -> None:
    first = study_named(tmp_path / "a" / "twin", other="VALUE = 1\n")
    second = study_named(tmp_path / "b" / "twin", other="VALUE = 2\n")
    assert [load_python(study, "other").VALUE for study in (first, second)] == [1, 2]


def test_missing_file_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(HotpathError, match=r"charts\.py: no such file"):
        load_python(study_named(tmp_path / "bare"), "charts")


def test_unbuilt_module_explains_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(HotpathError, match=r"bytewise\.so: not built; run: snakemake .*\"copy\""):
        load_module(tmp_path, COPY, COPY.variant("bytewise"))
