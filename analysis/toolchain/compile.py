"""Compile one study's bindings, or one variant into a Python module.

python -m analysis.toolchain.compile bindings STUDY -o OBJECT
python -m analysis.toolchain.compile module STUDY VARIANT --bindings OBJECT -o MODULE
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

import pybind11

from analysis.cli import fail_in_one_line
from analysis.errors import HotpathError
from analysis.records import write_records
from analysis.study import Study, Variant, find_study
from analysis.toolchain.compilers import Toolchain, compiling, find_toolchain
from analysis.toolchain.libfabric import MISSING
from analysis.toolchain.packages import package_flags
from analysis.toolchain.ptxas import KernelResources, parse_ptxas

STANDARD = "-std=c++17"
HOST_STANDARD = "-std=c++20"
OPTIMISATION = "-O3"


def defines(settings: Mapping[str, int | str]) -> list[str]:
    """study.yaml's constants and options as macros: `memory: pinned` becomes -DMEMORY=pinned."""
    return [f"-D{name.upper()}={value}" for name, value in settings.items()]


def host_compile(
    toolchain: Toolchain,
    source: Path,
    extra: Sequence[str],
    out: Path,
    optimisation: str = OPTIMISATION,
) -> None:
    """Compile a C++ file into an object with the host's compiler."""
    includes = [toolchain.include, pybind11.get_include(), sysconfig.get_path("include")]
    command = [
        toolchain.cxx,
        HOST_STANDARD,
        optimisation,
        "-fPIC",
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
    ]
    command += [f"-isystem{path}" for path in includes]
    run([*command, *extra, "-c", str(source), "-o", str(out)])


def compile_bindings(
    study: Study, toolchain: Toolchain, out: Path, optimisation: str = OPTIMISATION
) -> None:
    """The study's bindings with its own constants, shared by the variants that have the same."""
    if study.bindings is None:
        raise HotpathError(f"{study.name}: no bindings.cpp")
    settings = [*defines(study.constants), *_libfabric_flags(toolchain, *study.variants)]
    host_compile(toolchain, study.bindings, settings, out, optimisation)


def compile_module(
    study: Study,
    variant: Variant,
    toolchain: Toolchain,
    arch: str,
    bindings: Path,
    out: Path,
    optimisation: str = OPTIMISATION,
) -> None:
    """Link the variant with the bindings into `out`; its ptxas report goes beside it as CSV.

    `optimisation` is that of host code; a kernel is always optimised.
    """
    folder = out.parent
    folder.mkdir(parents=True, exist_ok=True)
    includes, link = package_flags(variant)
    uses_libfabric = _libfabric_flags(toolchain, variant)
    macros = defines({**variant.constants, **variant.options})
    settings = [*macros, *includes, *variant.flags, *uses_libfabric]
    if macros != defines(study.constants) and study.bindings:
        bindings = folder / f"{variant.name}.bindings.o"
        host_compile(toolchain, study.bindings, settings, bindings, optimisation)
    sm = arch.removeprefix("sm_")
    nvcc = [str(toolchain.nvcc), STANDARD, optimisation, f"-gencode=arch=compute_{sm},code=sm_{sm}"]
    report = ""
    compiled = folder / f"{variant.name}.o"
    if variant.path.suffix == ".cu":
        flags = ["-Xptxas=-v", "-lineinfo", "-Xcompiler=-fPIC,-fvisibility=hidden"]
        report = run([*nvcc, *flags, *settings, "-c", str(variant.path), "-o", str(compiled)])
    else:
        host_compile(toolchain, variant.path, settings, compiled, optimisation)
    libraries = [f"-L{path}" for path in toolchain.libraries]
    if uses_libfabric and toolchain.libfabric:
        link += toolchain.libfabric.link_flags
    objects = [str(compiled), str(bindings)]
    run([*nvcc, "-shared", *objects, *libraries, *link, "-o", str(out)])
    resources = parse_ptxas(report, study.name, variant.name)
    write_records(out.with_suffix(".ptxas.csv"), KernelResources, resources)


def _libfabric_flags(toolchain: Toolchain, *variants: Variant) -> list[str]:
    """What compiles `variants`; HotpathError where one needs libfabric and it is not here."""
    if not any("libfabric" in variant.needs for variant in variants):
        return []
    if toolchain.libfabric is None:
        raise HotpathError(MISSING)
    return toolchain.libfabric.compile_flags


def run(command: Sequence[str]) -> str:
    """Run a compiler; returns what it printed, and prints it. HotpathError carries its messages."""
    try:
        done = subprocess.run(command, env=compiling(), capture_output=True, text=True, check=False)
    except OSError as error:
        raise HotpathError(f"{command[0]}: cannot be run: {error}") from error
    printed = done.stdout + done.stderr
    if done.returncode != 0:
        raise HotpathError(f"{shlex.join(command)}\n{printed}")
    print(shlex.join(command), printed, sep="\n", file=sys.stderr)
    return printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["bindings", "module"])
    parser.add_argument("study")
    parser.add_argument("variant", nargs="?")
    parser.add_argument("--bindings", type=Path)
    parser.add_argument("--nvcc", default="auto")
    parser.add_argument("--libfabric", default="auto")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("-o", "--out", type=Path, required=True)
    arguments = parser.parse_args()
    study = find_study(arguments.study)
    toolchain = find_toolchain(arguments.nvcc, arguments.libfabric)
    if arguments.what == "bindings":
        compile_bindings(study, toolchain, arguments.out)
    else:
        variant = study.variant(arguments.variant)
        compile_module(study, variant, toolchain, arguments.arch, arguments.bindings, arguments.out)


if __name__ == "__main__":
    fail_in_one_line(main)
