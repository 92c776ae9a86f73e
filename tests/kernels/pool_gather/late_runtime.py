"""A CUDA runtime without a GPU that does everything late, for programs of several studies."""

from __future__ import annotations

from pathlib import Path

from tests.compiled import object_file, toolchain

HERE = Path(__file__).parent


def late_runtime(*sanitizer: str) -> Path:
    """The object of the runtime, compiled once for all programs with these flags."""
    settings = ["-std=c++17", "-O1", "-fPIC", "-pthread", f"-isystem{toolchain().include}"]
    settings += [f"-include{HERE / 'yielding.h'}", *sanitizer]
    return object_file(HERE / "deferred_cudart.cpp", HERE, settings)
