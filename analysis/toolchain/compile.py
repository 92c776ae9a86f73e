"""Commands that compile a C++ or CUDA file, and that link a variant with its bindings."""

import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pybind11

from analysis.toolchain.compilers import Toolchain
from analysis.toolchain.packages import Flags, package_flags

OPTIMISATION = "-O3"
"""Of host code; a kernel is always optimised."""
HIDDEN = ("-fPIC", "-fvisibility=hidden")
WITHOUT_SPECIAL_FUNCTIONS = "-D_GLIBCXX_BITS_SPECFUN_H"
"""Leaves Bessel functions and the like out of <cmath>, which every kernel includes. They take a
third of nvcc's time; the code of a kernel stays the same."""
COLLECT_LATER = "--param=ggc-min-heapsize=1000000"
"""Lets g++ use 1 GB of memory before it looks for unused memory."""
HOST_ONLY = ("-Wall", "-Wextra", COLLECT_LATER)
"""Flags of g++ that nvcc lacks."""


@dataclass(frozen=True)
class CompileSettings:
    """Settings of study.yaml for the compilation of a file.

    `needs` adds the flags of PACKAGES; other needs have no effect.
    """

    macros: Mapping[str, int | str] = field(default_factory=dict)
    flags: Sequence[str] = ()
    needs: Sequence[str] = ()

    def __hash__(self) -> int:
        return hash(repr(self))

    def for_tools(self) -> Flags:
        """Flags for either compiler, and for nvcc as the linker."""
        includes, link = package_flags(self.needs)
        return [*defines(self.macros), *includes, *self.flags], link


def defines(macros: Mapping[str, int | str]) -> list[str]:
    """study.yaml's constants and options as macros: `memory: pinned` becomes -DMEMORY=pinned."""
    return [f"-D{name.upper()}={value}" for name, value in macros.items()]


def object_command(
    source: Path, settings: CompileSettings, toolchain: Toolchain, arch: str, out: Path
) -> list[str]:
    """The command that compiles a file into the object `out`; of CUDA, with ptxas's report."""
    files = [*settings.for_tools()[0], "-c", str(source), "-o", str(out)]
    if source.suffix == ".cu":
        nvcc = [*_nvcc(toolchain, arch), "-Xptxas=-v", "-lineinfo"]
        return [*nvcc, WITHOUT_SPECIAL_FUNCTIONS, f"-Xcompiler={','.join(HIDDEN)}", *files]
    includes = [toolchain.include, pybind11.get_include(), sysconfig.get_path("include")]
    cxx = [toolchain.cxx, "-std=c++20", OPTIMISATION, *HIDDEN, *HOST_ONLY]
    return [*cxx, *(f"-isystem{path}" for path in includes), *files]


def link_command(
    objects: Sequence[Path],
    settings: CompileSettings,
    toolchain: Toolchain,
    arch: str,
    out: Path,
) -> list[str]:
    """The command that links the objects of a variant and of its bindings into the module `out`,
    which is a path of modules.module_path."""
    # No object has relocatable device code, so there is nothing to link for the device.
    nvcc = [*_nvcc(toolchain, arch), "-shared", "--no-device-link"]
    link = [*(f"-L{path}" for path in toolchain.libraries), *settings.for_tools()[1]]
    return [*nvcc, *map(str, objects), *link, "-o", str(out)]


def _nvcc(toolchain: Toolchain, arch: str) -> list[str]:
    sm = arch.removeprefix("sm_")
    target = f"-gencode=arch=compute_{sm},code=sm_{sm}"
    return [str(toolchain.nvcc), "-std=c++17", OPTIMISATION, target]
