"""Modules of made-up studies, with their flags and constants, and Python as a package."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from types import ModuleType

import pytest

from analysis.base.errors import HotpathError
from analysis.study import Study
from analysis.toolchain.compile import CompileSettings, defines
from analysis.toolchain.modules import load_module, load_python, module_path
from analysis.toolchain.study_settings import bindings_name
from tests.compiled import compile_bindings, compile_module, resources
from tests.measure.studies import write_study
from tests.synthetic import COPY
from tests.toolchain.numbers import make_study


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    """Modules of a study whose bindings are compiled once and once more for other constants."""
    folder = tmp_path_factory.mktemp("numbers")
    study = make_study(
        folder / "numbers",
        [
            # First, so that what is built after it could be linked with its bindings by mistake.
            {"name": "other", "source": "steps", "flags": ["-DTIMES=5"], "constants": {"step": 7}},
            {"name": "one"},
            {"name": "same", "source": "one"},
            {"name": "two"},
            {"name": "steps", "flags": ["-DTIMES=5", "-UNOTHING"]},
            {"name": "words", "options": {"number_of": "legs"}},
        ],
        {
            "one.cpp": "int number() { return 1; }\n",
            "two.cpp": "int number() { return 2; }\n",
            "steps.cpp": "int number() { return STEP * TIMES; }\n",
            "words.cpp": "enum Of { heads = 1, legs = 4 };\nint number() { return NUMBER_OF; }\n",
        },
    )
    for variant in study.variants:
        # Where the pipeline puts them: beside the modules.
        bindings = folder / "numbers" / f"{bindings_name(study, variant)}.o"
        compile_bindings(study, bindings, variant=variant)
        out = module_path(folder, study, variant)
        compile_module(study, variant, bindings, out)
        assert resources(out) == []
    return {variant.name: load_module(folder, study, variant) for variant in study.variants}


def test_constants_and_flags_reach_variant_and_bindings(numbers: dict[str, ModuleType]) -> None:
    assert [numbers[name].number() for name in ("one", "same", "two")] == [1, 1, 2]
    assert numbers["one"] is not numbers["same"]
    assert not {"one", "two"} & set(sys.modules)
    assert defines({"token_bytes": 656, "memory": "pinned"}) == [
        *("-DTOKEN_BYTES=656", "-DMEMORY=pinned")
    ]
    assert numbers["words"].number() == 4
    settings = CompileSettings({"bytes": 656, "memory": "pinned"}, ["-DX=1"], ["gpu", "rmm"])
    assert CompileSettings.from_json(settings.to_json()) == settings
    assert (numbers["steps"].number(), numbers["steps"].step) == (15, 3)
    assert (numbers["other"].number(), numbers["other"].step) == (35, 7)


def test_only_what_the_bindings_read_makes_them_a_variants_own(tmp_path: Path) -> None:
    entries = [
        {"name": "same", "constants": {"step": 3}},
        {"name": "other", "constants": {"step": 7}},
        {"name": "unread", "options": {"number_of": "legs"}},
        {"name": "read", "options": {"included": "legs"}},
    ]
    study = make_study(tmp_path / "numbers", entries, {f"{e['name']}.cpp": "" for e in entries})
    assert study.bindings is not None
    text = study.bindings.read_text()
    study.bindings.write_text(f'#include "by.h"\n{text}')
    (study.folder / "by.h").write_text("static_assert(sizeof(int) >= INCLUDED + 1);\n")
    names = [bindings_name(study, variant) for variant in study.variants]
    assert names == ["bindings", "other.bindings", "bindings", "read.bindings"]


@pytest.mark.parametrize(
    ("name", "needs", "text", "message"),
    [
        ("broken.cpp", [], "int number() { return nothing; }\n", "nothing"),
        ("broken.cu", ["gpu"], "__global__ void k() { nothing(); }\n", 'identifier "nothing" is'),
    ],
)
def test_a_compile_error_carries_the_compilers_message(
    tmp_path: Path, name: str, needs: list[str], text: str, message: str
) -> None:
    study = make_study(tmp_path / "numbers", [{"name": "broken", "needs": needs}], {name: text})
    out = module_path(tmp_path, study, study.variant("broken"))
    with pytest.raises(HotpathError) as caught:
        compile_module(study, study.variant("broken"), tmp_path / "bindings.o", out)
    command, _, said = str(caught.value).partition("\n")
    assert str(study.variant("broken").path) in command
    assert f"{name}" in said
    assert "error" in said
    assert message in said
    assert not out.exists()


def test_the_error_names_a_missing_file(tmp_path: Path) -> None:
    study = make_study(tmp_path / "numbers", [{"name": "one"}], {"one.cpp": ""})
    (study.folder / "bindings.cpp").unlink()
    with pytest.raises(HotpathError, match=r"numbers/bindings\.cpp: expected a C\+\+ or CUDA file"):
        compile_bindings(study, tmp_path / "bindings.o")


def study_named(folder: Path, **files: str) -> Study:
    study = write_study(folder, {"name": "one"})
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return study


def test_no_study_hides_a_module_of_the_standard_library(tmp_path: Path) -> None:
    before = dict(sys.modules)
    study = study_named(tmp_path / "statistics", colorsys="MINE = True\n")
    (study.folder / "charts.py").write_text("from .colorsys import MINE\n")
    assert load_python(study, "colorsys").MINE
    assert load_python(study, "charts").MINE
    assert load_python(study, "colorsys") is load_python(study, "colorsys")
    assert sys.modules["statistics"] is statistics
    added = set(sys.modules) - set(before)
    assert added and all(name.startswith("_study_statistics_") for name in added)


def test_studies_of_one_name_in_two_folders_are_distinct(tmp_path: Path) -> None:
    first = study_named(tmp_path / "a" / "twin", other="VALUE = 1\n")
    second = study_named(tmp_path / "b" / "twin", other="VALUE = 2\n")
    assert [load_python(study, "other").VALUE for study in (first, second)] == [1, 2]
    with pytest.raises(HotpathError, match=r"charts\.py: no such file"):
        load_python(first, "charts")
    with pytest.raises(HotpathError, match=r"bytewise\.so: not built; run: snakemake .*\"copy\""):
        load_module(tmp_path, COPY, COPY.variant("bytewise"))
