"""Modules of variants whose CUDA runtime is a stub that copies immediately, without a GPU."""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path
from typing import Any

import pybind11

from analysis.study import Study
from analysis.toolchain.compile import defines
from analysis.toolchain.modules import COMPILED_NAME
from tests.compiled import program, toolchain

STUB = Path(__file__).parent / "stub_cudart.cpp"


def stubbed(study: Study, name: str, stub: Path = STUB) -> Any:
    """The module of a variant without kernels, linked with the stub."""
    assert study.bindings is not None
    includes = [toolchain().include, pybind11.get_include(), sysconfig.get_path("include")]
    flags = ["-std=c++20", "-fPIC", "-shared", *(f"-isystem{path}" for path in includes)]
    sources = stub, study.bindings, study.variant(name).path
    out = program(f"{name}.so", sources, study.folder, [*flags, *defines(study.constants)])
    spec = importlib.util.spec_from_file_location(f"{out}.{COMPILED_NAME}", out)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
