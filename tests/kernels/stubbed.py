"""Host code of variants, linked with a CUDA runtime that has no GPU."""

from __future__ import annotations

import importlib.util
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pybind11

from analysis.study import Study
from analysis.toolchain.compile import defines
from analysis.toolchain.modules import COMPILED_NAME
from tests.compiled import object_file, program, toolchain

HERE = Path(__file__).parent
LATE = "-DLATE"
"""The runtime does work on a stream when somebody waits for it."""


def runtime(*flags: str, source: Path = HERE / "cudart.cpp") -> Path:
    """The object of the runtime, compiled once for all programs with these flags."""
    settings = ["-std=c++17", "-O1", "-fPIC", "-pthread", f"-isystem{toolchain().include}", *flags]
    return object_file(source, source.parent, settings)


def imported(name: str, sources: Sequence[Path], folder: Path, flags: Sequence[str]) -> Any:
    """A module of these sources and objects."""
    out = program(f"{name}.so", sources, folder, ["-fPIC", "-shared", *flags])
    spec = importlib.util.spec_from_file_location(f"{out}.{COMPILED_NAME}", out)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stubbed(study: Study, name: str, stub: Path = HERE / "cudart.cpp") -> Any:
    """The module of a variant without kernels; the runtime does all work at once."""
    assert study.bindings is not None
    includes = [toolchain().include, pybind11.get_include(), sysconfig.get_path("include")]
    flags = ["-std=c++20", *(f"-isystem{path}" for path in includes), *defines(study.constants)]
    sources = runtime(source=stub), study.bindings, study.variant(name).path
    return imported(name, sources, study.folder, flags)
