"""Tables of compiled code, kept until the code changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.study import Study, load_study
from analysis.toolchain.compiled import CODE_TABLES, MADE_OF, is_kept, keep
from tests.repository import STUDIES
from tests.synthetic import CALLS

COMPILED = [one for one in STUDIES.values() if any(v.is_compiled for v in one.variants)]


@pytest.mark.parametrize("study", COMPILED, ids=lambda study: study.name)
def test_committed_tables_are_of_the_committed_code(study: Study) -> None:
    """Otherwise the first command on a new machine compiles the study, which takes minutes."""
    folder = ROOT / "compiled" / "sm_90" / study.name
    renew = f"env/run snakemake --cores 8 build --config 'studies=[\"{study.name}\"]'"
    assert is_kept(study, folder), f"renew and commit them: {renew}"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """A copy of a study that is compiled, in a folder where it may be changed."""
    folder = tmp_path / CALLS.name
    shutil.copytree(CALLS.folder, folder)
    return load_study(folder / "study.yaml")


@pytest.fixture
def kept(study: Study, tmp_path: Path) -> Path:
    code, derived, out = tmp_path / "code", tmp_path / "derived", tmp_path / "kept"
    for folder in (code, derived):
        folder.mkdir()
    for name in CODE_TABLES:
        (code / name).write_text(f"{name}\n")
    (derived / "layout.csv").write_text("member,bytes\n")
    (derived / "absent.json").write_text("{}\n")
    out.mkdir()
    (out / "gone.csv").write_text("of older code\n")
    keep(study, code, derived, out)
    return out


def test_new_tables_of_a_study_replace_older_ones(kept: Path) -> None:
    names = {path.name for path in kept.iterdir()}
    assert names == {*CODE_TABLES, "layout.csv", "absent.json", MADE_OF}
    assert set(json.loads((kept / MADE_OF).read_text())["compilers"]) == {"nvcc", "cxx"}


def test_they_are_of_todays_code_until_it_changes(study: Study, kept: Path) -> None:
    assert is_kept(study, kept)
    source = study.variant("compiled").path
    source.write_text(source.read_text() + "\n// a comment changes nothing\n")
    assert is_kept(study, kept)
    source.write_text(source.read_text() + "\nint unused = 1;\n")
    assert not is_kept(study, kept)


def test_tables_py_is_among_the_code(study: Study, kept: Path) -> None:
    (study.folder / "tables.py").write_text("TABLES = {'layout': None}\n")
    assert not is_kept(study, kept)


@pytest.mark.parametrize("text", [None, "not JSON", "[]", "{}"])
def test_missing_or_damaged_tables_are_made_again(
    study: Study, kept: Path, text: str | None
) -> None:
    path = kept / MADE_OF
    path.unlink()
    if text is not None:
        path.write_text(text)
    assert not is_kept(study, kept)
