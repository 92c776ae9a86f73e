"""Compile a C++ or CUDA file into an object, or with its bindings into a Python module.

python -m analysis.toolchain.compile NVCC ARCH SOURCE SETTINGS OUT [BINDINGS]

The pipeline runs this program several hundred times. It therefore imports little, and takes the
settings of study.yaml as an argument.
"""

from __future__ import annotations

import json
import shlex
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pybind11

from analysis.base.cli import fail_in_one_line
from analysis.base.errors import HotpathError
from analysis.toolchain.compilers import Toolchain, find_toolchain, output_of
from analysis.toolchain.packages import Flags, package_flags
from analysis.toolchain.reports import RESOURCES, parse_ptxas, write_table

OPTIMISATION = "-O3"
HIDDEN = ("-fPIC", "-fvisibility=hidden")


@dataclass(frozen=True)
class CompileSettings:
    """Settings of study.yaml for the compilation of a file.

    `needs` adds the flags of PACKAGES; other needs have no effect.
    """

    macros: Mapping[str, int | str] = field(default_factory=dict)
    flags: Sequence[str] = ()
    needs: Sequence[str] = ()

    def to_json(self) -> str:
        """The value of this program's option --settings."""
        return json.dumps(asdict(self))

    def for_tools(self) -> Flags:
        """Flags for either compiler, and for nvcc as the linker."""
        includes, link = package_flags(self.needs)
        return [*defines(self.macros), *includes, *self.flags], link


def defines(macros: Mapping[str, int | str]) -> list[str]:
    """study.yaml's constants and options as macros: `memory: pinned` becomes -DMEMORY=pinned."""
    return [f"-D{name.upper()}={value}" for name, value in macros.items()]


def compile_object(
    source: Path,
    settings: CompileSettings,
    toolchain: Toolchain,
    arch: str,
    out: Path,
    optimisation: str = OPTIMISATION,
) -> str:
    """Compile a file into the object `out`; returns ptxas's report, which is empty for C++.

    `optimisation` is that of host code; a kernel is always optimised. HotpathError if `source` is
    missing or the compiler fails; it has the compiler's messages.
    """
    if not source.exists():
        raise HotpathError(f"{source}: expected a C++ or CUDA file, got none")
    files = [*settings.for_tools()[0], "-c", str(source), "-o", str(out)]
    if source.suffix == ".cu":
        nvcc = [*_nvcc(toolchain, arch, optimisation), "-Xptxas=-v", "-lineinfo"]
        return run([*nvcc, f"-Xcompiler={','.join(HIDDEN)}", *files])
    includes = [toolchain.include, pybind11.get_include(), sysconfig.get_path("include")]
    cxx = [toolchain.cxx, "-std=c++20", optimisation, *HIDDEN, "-Wall", "-Wextra"]
    run([*cxx, *(f"-isystem{path}" for path in includes), *files])
    return ""


def _nvcc(toolchain: Toolchain, arch: str, optimisation: str) -> list[str]:
    sm = arch.removeprefix("sm_")
    target = f"-gencode=arch=compute_{sm},code=sm_{sm}"
    return [str(toolchain.nvcc), "-std=c++17", optimisation, target]


def compile_module(
    source: Path,
    settings: CompileSettings,
    toolchain: Toolchain,
    arch: str,
    bindings: Path,
    out: Path,
    optimisation: str = OPTIMISATION,
) -> None:
    """Compile a variant's file, link it with the object `bindings` into the module `out`, and write
    ptxas's report beside it as CSV. `out` is a path of modules.module_path."""
    out.parent.mkdir(parents=True, exist_ok=True)
    variant_object = out.with_suffix(".o")
    report = compile_object(source, settings, toolchain, arch, variant_object, optimisation)
    # No object has relocatable device code, so there is nothing to link for the device.
    nvcc = [*_nvcc(toolchain, arch, optimisation), "-shared", "--no-device-link"]
    link = [*(f"-L{path}" for path in toolchain.libraries), *settings.for_tools()[1]]
    run([*nvcc, str(variant_object), str(bindings), *link, "-o", str(out)])
    table, names = out.with_suffix(".ptxas.csv"), (out.parent.name, out.stem)
    write_table(table, RESOURCES, *names, parse_ptxas(report))


def run(command: Sequence[str]) -> str:
    """Run a compiler; returns what it printed, and prints it. HotpathError carries its messages."""
    printed = output_of(command)
    print(shlex.join(command), printed, sep="\n", file=sys.stderr)
    return printed


def main(nvcc: str, arch: str, source: str, settings: str, out: str, bindings: str = "") -> None:
    toolchain, of_file = find_toolchain(nvcc), CompileSettings(**json.loads(settings))
    if bindings:
        compile_module(Path(source), of_file, toolchain, arch, Path(bindings), Path(out))
    else:
        compile_object(Path(source), of_file, toolchain, arch, Path(out))


if __name__ == "__main__":
    fail_in_one_line(lambda: main(*sys.argv[1:]))
