"""Compilers found, modules built for several GPUs, ptxas read, bad arguments refused."""

from __future__ import annotations

import csv
import os
import re
import shlex
import sys
import sysconfig
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import yaml

from analysis.errors import FieldError, HotpathError
from analysis.modules import load_module, module_path
from analysis.records import write_records
from analysis.study import Study, discover, load_study
from analysis.toolchain import compile as compiling
from analysis.toolchain.compile import compile_bindings, compile_module, defines, torch_settings
from analysis.toolchain.compilers import Toolchain, find_toolchain, resolve_arch
from analysis.toolchain.ptxas import COLUMNS, KernelResources, parse_ptxas

GATHER = discover()["h2d_gather"]
# One variant of each file; those that differ in constants only would not build otherwise.
KERNELS = list({v.path: v for v in reversed(GATHER.variants) if v.path.suffix == ".cu"}.values())
ARCHS = ("sm_80", "sm_89", "sm_100", "sm_120")

TWO_KERNELS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z3twoPKdPd' for 'sm_90'
ptxas info    : Function properties for _Z3twoPKdPd
    816 bytes stack frame, 808 bytes spill stores, 864 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 816 bytes cumulative stack size
ptxas info    : Compile time = 18.959 ms
ptxas info    : Compiling entry function '_Z3onePi' for 'sm_90'
ptxas info    : Function properties for _Z3onePi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 256 bytes smem
ptxas info    : Compile time = 1.642 ms
ptxas info    : Function properties for _Z6helperPKdi
    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
"""


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return find_toolchain()


def test_the_locked_compiler_comes_before_any_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    locked = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "nvcc")
    if not locked.is_file():
        pytest.skip("this environment is not the locked one")
    (tmp_path / "nvcc").touch()
    monkeypatch.setenv("CUDACXX", str(tmp_path / "nvcc"))
    assert find_toolchain().nvcc == locked


def test_a_named_compiler_is_taken_wherever_it_stands(toolchain: Toolchain, tmp_path: Path) -> None:
    wrapper = tmp_path / "my-nvcc"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(str(toolchain.nvcc))} "$@"\n')
    wrapper.chmod(0o755)
    named = find_toolchain(str(wrapper))
    assert named.nvcc == wrapper
    assert re.fullmatch(r"\d+\.\d+", named.version)
    assert (named.include / "cuda_runtime.h").exists()
    assert replace(named, nvcc=toolchain.nvcc) == toolchain


@pytest.mark.parametrize("variable", ["CUDACXX", "CUDA_HOME", "PATH"])
def test_without_a_locked_compiler_the_environment_names_one(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    monkeypatch.setattr("analysis.toolchain.compilers.sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.delenv("CUDACXX", raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    folder = toolchain.nvcc.parent
    value = {
        "CUDACXX": str(toolchain.nvcc),
        "CUDA_HOME": str(folder.parent),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
    }
    monkeypatch.setenv(variable, value[variable])
    assert find_toolchain() == toolchain


def test_no_compiler_anywhere_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("analysis.toolchain.compilers.sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("CUDACXX", str(tmp_path / "gone"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HotpathError, match="nvcc: none in this environment, CUDACXX, CUDA_HOME or"):
        find_toolchain()


def test_a_named_compiler_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FieldError) as caught:
        find_toolchain(str(tmp_path / "nvcc"))
    assert caught.value.field == "config: nvcc"
    assert str(caught.value).endswith(f"got {str(tmp_path / 'nvcc')!r}")
    with pytest.raises(FieldError, match="expected a CUDA compiler, got '/bin/true'"):
        find_toolchain("/bin/true")
    (tmp_path / "text").touch()
    with pytest.raises(HotpathError, match=r"text: cannot be run"):
        find_toolchain(str(tmp_path / "text"))


def test_a_named_architecture_asks_no_gpu() -> None:
    assert resolve_arch("sm_120", "GPU-of-nobody") == "sm_120"


def test_ptxas_reports_are_read_kernel_by_kernel(tmp_path: Path) -> None:
    found = list(parse_ptxas(TWO_KERNELS, "study", "variant"))
    assert found == [
        KernelResources("study", "variant", "sm_90", "_Z3twoPKdPd", 32, 0, 816, 808, 864),
        KernelResources("study", "variant", "sm_90", "_Z3onePi", 10, 256, 0, 0, 0),
    ]
    write_records(tmp_path / "resources.csv", KernelResources, found)
    with (tmp_path / "resources.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert rows[0]["spill_load_bytes"] == "864"


def test_a_report_without_kernels_is_no_rows() -> None:
    assert list(parse_ptxas("", "study", "variant")) == []
    assert list(parse_ptxas("ptxas info    : 0 bytes gmem\n", "study", "variant")) == []


def resources(module: Path) -> list[dict[str, str]]:
    with module.with_suffix(".ptxas.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="session")
def gather(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The gather's kernels built for each of ARCHS: folders of modules."""
    folder = tmp_path_factory.mktemp("modules")
    bindings = folder / "bindings.o"
    compile_bindings(GATHER, toolchain, bindings)

    def build(work: tuple[str, int]) -> None:
        arch, number = work
        variant = KERNELS[number]
        out = module_path(folder / arch, GATHER, variant)
        compile_module(GATHER, variant, toolchain, arch, bindings, out)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(build, [(arch, n) for arch in ARCHS for n in range(len(KERNELS))]))
    return {arch: folder / arch for arch in ARCHS}


@pytest.mark.parametrize("arch", ARCHS)
def test_every_kernel_builds_for_the_architecture_without_spills(
    gather: dict[str, Path], arch: str
) -> None:
    assert KERNELS
    for variant in KERNELS:
        module = module_path(gather[arch], GATHER, variant)
        assert module.stat().st_size > 0
        found = resources(module)
        assert found, f"{variant.name}: ptxas said nothing"
        for kernel in found:
            assert (kernel["study"], kernel["variant"]) == ("h2d_gather", variant.name)
            assert kernel["arch"] == arch
            assert 0 < int(kernel["registers"]) <= 255
            assert kernel["spill_store_bytes"] == kernel["spill_load_bytes"] == "0"


@pytest.fixture(scope="session")
def bind(gather: dict[str, Path]) -> Callable[..., Any]:
    module = load_module(gather["sm_80"], GATHER, KERNELS[0])
    assert module.row_bytes == GATHER.constants["token_bytes"]
    return module.bind


class OnDevice:
    """An array that says it is in GPU memory, at an address that must never be read."""

    def __init__(self, shape: tuple[int, ...], typestr: str, strides: Any = None) -> None:
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (0x10, False),
            "strides": strides,
            "version": 3,
        }


ROW = GATHER.constants["token_bytes"]
SRC = np.zeros((4, ROW), np.uint8)
DST = OnDevice((4, ROW), "|u1")
PAIRS = OnDevice((1, 2, 2), "<i4")


@pytest.mark.parametrize(
    ("field", "value", "expected", "got"),
    [
        ("src", SRC.astype(np.int8), "elements of type uint8", "int8"),
        ("src", np.zeros((4, ROW), np.float32), "elements of type uint8", "float32"),
        ("src", np.zeros((4, ROW - 16), np.uint8), f"shape (slots, {ROW})", f"(4, {ROW - 16})"),
        ("src", np.zeros(4 * ROW, np.uint8), f"shape (slots, {ROW})", f"({4 * ROW})"),
        ("src", np.zeros((8, ROW), np.uint8)[::2], "a contiguous array", "a strided one"),
        ("src", np.zeros((ROW, 4), np.uint8).T, "a contiguous array", "a strided one"),
        ("dst", np.zeros((4, ROW), np.uint8), "an array in GPU memory", "<class 'numpy.ndarray'>"),
        ("dst", OnDevice((4, ROW), "|i1"), "elements of type |u1", "|i1"),
        ("dst", OnDevice((4, ROW + 1), "|u1"), f"shape (slots, {ROW})", f"(4, {ROW + 1})"),
        ("dst", OnDevice((2, 2, ROW), "|u1"), f"shape (slots, {ROW})", f"(2, 2, {ROW})"),
        ("dst", OnDevice((4, ROW), "|u1", (2 * ROW, 1)), "a contiguous array", "strides"),
        ("pairs", np.zeros((1, 2, 2), np.int32), "an array in GPU memory", "numpy.ndarray"),
        ("pairs", OnDevice((1, 2, 2), "<i8"), "elements of type <i4", "<i8"),
        ("pairs", OnDevice((1, 2, 3), "<i4"), "shape (batch, topk, 2)", "(1, 2, 3)"),
        ("pairs", OnDevice((2, 2), "<i4"), "shape (batch, topk, 2)", "(2, 2)"),
        ("pairs", OnDevice((1, 2, 2), "<i4", (32, 16, 4)), "a contiguous array", "strides"),
    ],
)
def test_bindings_name_the_argument_that_is_wrong(
    bind: Callable[..., Any], field: str, value: object, expected: str, got: str
) -> None:
    arguments = {"src": SRC, "dst": DST, "pairs": PAIRS} | {field: value}
    with pytest.raises(ValueError) as caught:
        bind(**arguments)
    said, _, said_got = str(caught.value).partition(", got ")
    assert said == f"{field}: expected {expected}"
    assert got in said_got


def test_bindings_refuse_pageable_memory_or_a_missing_driver_by_src(
    bind: Callable[..., Any],
) -> None:
    with pytest.raises((ValueError, RuntimeError), match=r"^src: "):
        bind(src=SRC, dst=DST, pairs=PAIRS)


def test_modules_of_one_study_stand_beside_each_other(gather: dict[str, Path]) -> None:
    modules = [load_module(gather["sm_89"], GATHER, variant) for variant in KERNELS]
    for what in ("__file__", "__name__", "bind", "Bound"):
        assert len({id(getattr(module, what)) for module in modules}) == len(modules)
    assert [Path(str(module.__file__)).stem for module in modules] == [v.name for v in KERNELS]


BINDINGS = """\
#include <pybind11/pybind11.h>
int number();
PYBIND11_MODULE(variant, m) {
  m.def("number", &number);
  m.attr("step") = STEP;
}
"""


def make_study(folder: Path, entries: list[dict[str, Any]], sources: dict[str, str]) -> Study:
    """A study of host code, whose variants return numbers."""
    folder.mkdir(parents=True)
    common = {"role": "step", "title": "A number", "cases": ["once"]}
    description = {
        "title": "Numbers",
        "question": "Which?",
        "budget_s": 1,
        "constants": {"step": 3},
        "metrics": {"host_time": {"unit": "s", "label": "host time"}},
        "cases": {"once": {"n": [0], "payload_bytes": 0}},
        "headline": {"n": 0},
        "variants": [common | entry for entry in entries],
    }
    (folder / "study.yaml").write_text(yaml.safe_dump(description, sort_keys=False))
    (folder / "bindings.cpp").write_text(BINDINGS)
    for name, text in sources.items():
        (folder / name).write_text(text)
    return load_study(folder / "study.yaml")


@pytest.fixture(scope="session")
def numbers(
    toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, ModuleType]:
    """Modules of a study whose bindings are compiled once and once more for own constants."""
    folder = tmp_path_factory.mktemp("numbers")
    study = make_study(
        folder / "numbers",
        [
            # First, so that what is built after it could be linked with its bindings by mistake.
            {"name": "own", "source": "steps", "flags": ["-DTIMES=5"], "constants": {"step": 7}},
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
    # Where the pipeline puts them: beside the modules.
    bindings = folder / "numbers" / "bindings.o"
    compile_bindings(study, toolchain, bindings)
    for variant in study.variants:
        out = module_path(folder, study, variant)
        compile_module(study, variant, toolchain, "sm_90", bindings, out)
        assert resources(out) == []
    return {variant.name: load_module(folder, study, variant) for variant in study.variants}


def test_each_module_runs_its_own_code(numbers: dict[str, ModuleType]) -> None:
    assert [numbers[name].number() for name in ("one", "same", "two")] == [1, 1, 2]
    assert numbers["one"] is not numbers["same"]
    assert not {"one", "two"} & set(sys.modules)


def test_constants_and_flags_reach_variant_and_bindings(numbers: dict[str, ModuleType]) -> None:
    assert defines({"token_bytes": 656}) == ["-DTOKEN_BYTES=656"]
    assert (numbers["steps"].number(), numbers["steps"].step) == (15, 3)
    assert (numbers["own"].number(), numbers["own"].step) == (35, 7)


def test_an_option_is_a_word_of_the_source(numbers: dict[str, ModuleType]) -> None:
    assert defines({"memory": "pinned"}) == ["-DMEMORY=pinned"]
    assert numbers["words"].number() == 4


@pytest.mark.parametrize(
    ("name", "needs", "text", "message"),
    [
        ("broken.cpp", [], "int number() { return nothing; }\n", "nothing"),
        ("broken.cu", ["gpu"], "__global__ void k() { nothing(); }\n", 'identifier "nothing" is'),
    ],
)
def test_a_compile_error_carries_the_compilers_message(
    toolchain: Toolchain, tmp_path: Path, name: str, needs: list[str], text: str, message: str
) -> None:
    study = make_study(tmp_path / "numbers", [{"name": "broken", "needs": needs}], {name: text})
    out = module_path(tmp_path, study, study.variant("broken"))
    with pytest.raises(HotpathError) as caught:
        compile_module(
            study, study.variant("broken"), toolchain, "sm_90", tmp_path / "bindings.o", out
        )
    command, _, said = str(caught.value).partition("\n")
    assert str(study.variant("broken").path) in command
    assert f"{name}" in said
    assert "error" in said
    assert message in said
    assert not out.exists()


def test_bindings_are_asked_for_by_name(toolchain: Toolchain, tmp_path: Path) -> None:
    study = make_study(tmp_path / "numbers", [{"name": "one"}], {"one.cpp": ""})
    (study.folder / "bindings.cpp").unlink()
    with pytest.raises(HotpathError, match=r"numbers: no bindings\.cpp"):
        compile_bindings(study, toolchain, tmp_path / "bindings.o")


def test_a_module_that_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(HotpathError, match=r"v0_byte_copy\.so: not built; run: snakemake"):
        load_module(tmp_path, GATHER, GATHER.variant("v0_byte_copy"))


def test_a_variant_that_needs_torch_finds_its_headers_where_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    variant = GATHER.variant("torch_index_select")
    monkeypatch.setattr(compiling, "torch_root", lambda: tmp_path)
    includes, link = torch_settings(variant)
    assert includes == [f"-isystem{tmp_path / 'include'}"]
    assert f"-L{tmp_path / 'lib'}" in link
    assert torch_settings(GATHER.variant("batch_memcpy")) == ([], [])
    monkeypatch.setattr(compiling, "torch_root", lambda: None)
    assert torch_settings(variant) == ([], [])
