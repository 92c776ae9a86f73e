"""Modules of made-up studies with their flags, constants and packages; Python as a package; what
a change compiles again."""

import statistics
import sys
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.base.errors import HotpathError
from analysis.study import Study, discover, load_study
from analysis.study.source import bindings_files
from analysis.toolchain.modules import (
    compile_bindings,
    compile_module,
    load_module,
    load_python,
    module_path,
    shared_parts,
)
from analysis.toolchain.packages import PACKAGES, package_flags, package_versions
from analysis.toolchain.reports import resources
from tests.compiled import bindings_made_of, included, module_made_of
from tests.measure.studies import write_study
from tests.repository import copy_studies
from tests.synthetic import COPY, description

# Without pybind11, which takes seconds to compile.
BINDINGS = """\
#include <Python.h>
#include "by.h"
int number();
static PyObject* call(PyObject*, PyObject*) { return PyLong_FromLong(number()); }
static PyMethodDef methods[] = {{"number", call, METH_NOARGS, ""}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "variant", "", -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit_variant() {
  PyObject* made = PyModule_Create(&definition);
  PyModule_AddIntConstant(made, "step", STEP);
  return made;
}
"""
STEPS = {"source": "steps", "flags": ["-DTIMES=FIVE", "-UNOTHING"]}
ENTRIES: list[dict[str, Any]] = [
    # First, so that what is built after it could be linked with its bindings by mistake.
    {"name": "other", **STEPS, "constants": {"step": 7}},
    {"name": "one"},
    {"name": "same", "source": "one", "constants": {"step": 3}},
    {"name": "steps", **STEPS},
    {"name": "unread", "source": "words", "options": {"number_of": "legs"}},
    {"name": "read", "source": "one", "options": {"included": "four"}},
    {"name": "again", "source": "one", "options": {"included": "four"}},
]
SOURCES = {
    "one.cpp": "int number() { return 1; }\n",
    "steps.cpp": "int number() { return STEP * TIMES; }\n",
    "words.cpp": "enum Of { heads = 1, legs = 4 };\nint number() { return NUMBER_OF; }\n",
    "by.h": "enum { four = 4 };\n#ifdef INCLUDED\nstatic_assert(four == INCLUDED);\n#endif\n",
}


def make_study(folder: Path, entries: list[dict[str, Any]], sources: dict[str, str]) -> Study:
    """A study of host code, whose modules return numbers."""
    cases = {"once": {"n": [0], "payload_bytes": 0}}
    times = {"host_time": ("s", "host time")}
    more = {"constants": {"step": 3, "five": 5}, "headline": {"n": 0}}
    described = description("Numbers", times, cases, entries, **more)
    files = {"study.yaml": yaml.safe_dump(described), "bindings.cpp": BINDINGS, **sources}
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    return load_study(folder / "study.yaml")


def test_constants_and_flags_reach_variant_and_bindings(tmp_path: Path) -> None:
    study = make_study(tmp_path / "numbers", ENTRIES, SOURCES)
    modules, parts = {}, shared_parts(study)
    for variant in study.variants:
        # Where the pipeline puts them: beside the modules.
        bindings = tmp_path / "numbers" / f"{parts[variant.name][1]}.o"
        if not bindings.exists():
            compile_bindings(study, variant, bindings)
        out = module_path(tmp_path, study, variant)
        compile_module(variant, bindings, out)
        assert resources(out) == []
        modules[variant.name] = load_module(tmp_path, study, variant)
    # Only what the bindings read makes them a variant's own.
    names = [name for _, name in parts.values()]
    assert names == ["other.bindings", *["bindings"] * 4, *["read.bindings"] * 2]
    numbers = [(module.number(), module.step) for module in modules.values()]
    assert numbers == [(35, 7), (1, 3), (1, 3), (15, 3), (4, 3), (1, 3), (1, 3)]
    assert modules["one"] is not modules["same"] and "one" not in sys.modules


def test_variants_of_one_module_are_compiled_once(tmp_path: Path) -> None:
    study = make_study(tmp_path / "numbers", ENTRIES, SOURCES)
    # "other" differs from "steps" by a constant, "read" from "one" by its bindings.
    twins = {name: first for name, (first, _) in shared_parts(study).items() if name != first}
    assert twins == {"same": "one", "again": "read"}


@pytest.mark.parametrize(
    ("name", "needs", "text"),
    [
        ("broken.cpp", [], "int number() { return nothing; }\n"),
        ("broken.cu", ["gpu"], "__global__ void k() { nothing(); }\n"),
    ],
)
def test_an_error_carries_the_compilers_message_or_names_a_missing_file(
    tmp_path: Path, name: str, needs: list[str], text: str
) -> None:
    study = make_study(tmp_path / "numbers", [{"name": "broken", "needs": needs}], {name: text})
    (variant,) = study.variants
    out = module_path(tmp_path, study, variant)
    with pytest.raises(HotpathError, match=rf"(?s)^.*{variant.path}.*\n.*{name}.*error.*nothing"):
        compile_module(variant, tmp_path / "bindings.o", out)
    assert not out.exists()
    (study.folder / "bindings.cpp").unlink()
    with pytest.raises(HotpathError, match=r"numbers/bindings\.cpp: No such file"):
        compile_bindings(study, None, tmp_path / "bindings.o")


def study_named(folder: Path, **files: str) -> Study:
    study = write_study(folder, {"name": "one"})
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return study


def test_no_study_hides_a_module_of_the_standard_library_or_another_study(tmp_path: Path) -> None:
    before = set(sys.modules)
    files = {"colorsys": "MINE = True\n", "charts": "from .colorsys import MINE\n"}
    study = study_named(tmp_path / "statistics", **files)
    assert load_python(study, "charts").MINE
    assert load_python(study, "colorsys") is load_python(study, "colorsys")
    assert sys.modules["statistics"] is statistics
    assert all(name.startswith("_study_statistics_") for name in set(sys.modules) - before)
    twins = [study_named(tmp_path / top / "twin", other=f"TOP = '{top}'\n") for top in "ab"]
    assert [load_python(study, "other").TOP for study in twins] == ["a", "b"]
    with pytest.raises(HotpathError, match=r"charts\.py: no such file"):
        load_python(twins[0], "charts")
    with pytest.raises(HotpathError, match=r"bytewise\.so: not built; run: snakemake .*\"copy\""):
        load_module(tmp_path, COPY, COPY.variant("bytewise"))


def install(site: Path, module: str, distribution: str, version: str) -> Path:
    """An empty package in a folder that Python looks into, as a wheel would leave it."""
    for folder in (site / module, site / f"{distribution.replace('-', '_')}-{version}.dist-info"):
        folder.mkdir(parents=True)
    (site / module / "__init__.py").touch()
    (folder / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n")
    return site / module


def test_a_package_of_several_distributions_is_linked_unless_it_is_too_old(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("torch", "librmm"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    assert package_flags(["gpu", "torch", "rmm"]) == ([], [])
    assert PACKAGES["rmm"].unmet == "RMM is not installed"
    for name in ("torch", "librmm"):
        monkeypatch.delitem(sys.modules, name)
    torch = install(tmp_path, "torch", "torch", "2.9.1")
    rmm = install(tmp_path, "librmm", "librmm-cu12", "26.10.0")
    monkeypatch.syspath_prepend(tmp_path)
    includes, link = package_flags(["gpu", "torch", "rmm"])
    assert includes[:3] == ["-isystem", f"{torch}/include", f"-I{rmm}/include/rapids"]
    assert {f"-L{torch}/lib", "-lc10", f"-L{rmm}/lib64", "-lrapids_logger"} <= {*link}
    assert package_versions(["gpu", "torch"]) == {"torch": "2.9.1"}
    newer = replace(PACKAGES["rmm"], oldest=(26, 11))
    assert newer.unmet == "needs RMM 26.11 or newer, 26.10.0 is installed"
    monkeypatch.setitem(PACKAGES, "rmm", newer)
    assert package_flags(["rmm"]) == ([], [])


def read_by_compiler(sources: Collection[Path], root: Path) -> dict[Path, set[Path]]:
    """The files below `root` that the compiler's preprocessor reads for each source, with any of
    the macros that decide what is included."""
    read: dict[Path, set[Path]] = {source: set() for source in sources}
    for macro in ("", "OVER_CUDA"):
        if any(macro in path.read_text() for path in set[Path]().union(sources, *read.values())):
            found = included(sources, [f"-I{root / 'empty'}", "-x", "c++", f"-D{macro or 'NONE'}"])
            for source, files in zip(sources, found, strict=True):
                resolved = map(Path.resolve, files)
                read[source] |= {path for path in resolved if path.is_relative_to(root)}
    return read


def test_a_changed_header_changes_the_objects_that_include_it_and_no_others(tmp_path: Path) -> None:
    copy_studies(tmp_path)
    (tmp_path / "empty").mkdir()
    headers = {*tmp_path.rglob("*.h")}
    assert len(headers) > 50
    for study in filter(lambda study: study.bindings, discover(tmp_path).values()):
        assert study.bindings is not None
        compiled = [variant for variant in study.variants if variant.is_compiled]
        read = read_by_compiler({study.bindings, *(one.path for one in compiled)}, tmp_path)
        of_bindings = read[study.bindings]
        assert set(bindings_files(study)) == of_bindings, study.name
        assert headers & {*bindings_made_of(study)} == headers & of_bindings, study.name
        for variant in compiled:
            made_of = headers & {*module_made_of(study, variant)}
            assert made_of == headers & (of_bindings | read[variant.path]), variant.name
