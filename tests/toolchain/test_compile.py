"""Modules of made-up studies, with their flags and constants, and Python as a package."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from typing import Any

import pytest

from analysis.base.errors import HotpathError
from analysis.study import Study
from analysis.toolchain.compile import CompileSettings
from analysis.toolchain.modules import load_module, load_python, module_path
from analysis.toolchain.study_settings import bindings_name
from tests.compiled import compile_bindings, compile_module, resources
from tests.measure.studies import write_study
from tests.synthetic import COPY
from tests.toolchain.numbers import make_study

ENTRIES: list[dict[str, Any]] = [
    # First, so that what is built after it could be linked with its bindings by mistake.
    {"name": "other", "source": "steps", "flags": ["-DTIMES=5"], "constants": {"step": 7}},
    {"name": "one"},
    {"name": "same", "source": "one"},
    {"name": "steps", "flags": ["-DTIMES=5", "-UNOTHING"]},
    {"name": "words", "options": {"number_of": "legs"}},
]
SOURCES = {
    "one.cpp": "int number() { return 1; }\n",
    "steps.cpp": "int number() { return STEP * TIMES; }\n",
    "words.cpp": "enum Of { heads = 1, legs = 4 };\nint number() { return NUMBER_OF; }\n",
}


def test_constants_and_flags_reach_variant_and_bindings(tmp_path: Path) -> None:
    study = make_study(tmp_path / "numbers", ENTRIES, SOURCES)
    modules = {}
    for variant in study.variants:
        # Where the pipeline puts them: beside the modules.
        bindings = tmp_path / "numbers" / f"{bindings_name(study, variant)}.o"
        compile_bindings(study, bindings, variant=variant)
        out = module_path(tmp_path, study, variant)
        compile_module(study, variant, bindings, out)
        assert resources(out) == []
        modules[variant.name] = load_module(tmp_path, study, variant)
    numbers = [(module.number(), module.step) for module in modules.values()]
    assert numbers == [(35, 7), (1, 3), (1, 3), (15, 3), (4, 3)]
    assert modules["one"] is not modules["same"] and "one" not in sys.modules
    settings = CompileSettings({"bytes": 656, "memory": "pinned"}, ["-DX=1"], ["gpu", "rmm"])
    assert CompileSettings.from_json(settings.to_json()) == settings


def test_only_what_the_bindings_read_makes_them_a_variants_own(tmp_path: Path) -> None:
    entries = [
        {"name": "same", "constants": {"step": 3}},
        {"name": "other", "constants": {"step": 7}},
        {"name": "unread", "options": {"number_of": "legs"}},
        {"name": "read", "options": {"included": "legs"}},
    ]
    study = make_study(tmp_path / "numbers", entries, {f"{e['name']}.cpp": "" for e in entries})
    assert study.bindings is not None
    study.bindings.write_text(f'#include "by.h"\n{study.bindings.read_text()}')
    (study.folder / "by.h").write_text("static_assert(sizeof(int) >= INCLUDED + 1);\n")
    names = [bindings_name(study, variant) for variant in study.variants]
    assert names == ["bindings", "other.bindings", "bindings", "read.bindings"]


@pytest.mark.parametrize(
    ("name", "needs", "text"),
    [
        ("broken.cpp", [], "int number() { return nothing; }\n"),
        ("broken.cu", ["gpu"], "__global__ void k() { nothing(); }\n"),
    ],
)
def test_a_compile_error_carries_the_compilers_message(
    tmp_path: Path, name: str, needs: list[str], text: str
) -> None:
    study = make_study(tmp_path / "numbers", [{"name": "broken", "needs": needs}], {name: text})
    variant = study.variant("broken")
    out = module_path(tmp_path, study, variant)
    with pytest.raises(HotpathError) as caught:
        compile_module(study, variant, tmp_path / "bindings.o", out)
    command, _, message = str(caught.value).partition("\n")
    assert str(variant.path) in command
    assert all(word in message for word in (name, "error", "nothing"))
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


def test_no_study_hides_a_module_of_the_standard_library_or_another_study(tmp_path: Path) -> None:
    before = dict(sys.modules)
    study = study_named(tmp_path / "statistics", colorsys="MINE = True\n")
    (study.folder / "charts.py").write_text("from .colorsys import MINE\n")
    assert load_python(study, "charts").MINE
    assert load_python(study, "colorsys") is load_python(study, "colorsys")
    assert sys.modules["statistics"] is statistics
    added = set(sys.modules) - set(before)
    assert added and all(name.startswith("_study_statistics_") for name in added)
    twins = [study_named(tmp_path / top / "twin", other=f"TOP = '{top}'\n") for top in "ab"]
    assert [load_python(study, "other").TOP for study in twins] == ["a", "b"]
    with pytest.raises(HotpathError, match=r"charts\.py: no such file"):
        load_python(twins[0], "charts")
    with pytest.raises(HotpathError, match=r"bytewise\.so: not built; run: snakemake .*\"copy\""):
        load_module(tmp_path, COPY, COPY.variant("bytewise"))
