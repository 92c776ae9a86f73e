"""Compile the bindings of a study or of one variant, or a variant into a Python module."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

import pybind11

from analysis.base.cli import fail_in_one_line, program
from analysis.base.errors import HotpathError
from analysis.base.records import write_records
from analysis.study import Study, Variant, find_study
from analysis.study.source import bindings_files
from analysis.toolchain.compilers import Toolchain, compiling, find_toolchain
from analysis.toolchain.libfabric import MISSING
from analysis.toolchain.packages import package_flags
from analysis.toolchain.ptxas import KernelResources, parse_ptxas

STANDARD = "-std=c++17"
HOST_STANDARD = "-std=c++20"
OPTIMISATION = "-O3"
HOST_FLAGS = ("-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
SHARED_BINDINGS = "bindings"
WORD = re.compile(r"\w+")


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
    command = [toolchain.cxx, HOST_STANDARD, optimisation, *HOST_FLAGS]
    command += [f"-isystem{path}" for path in includes]
    run([*command, *extra, "-c", str(source), "-o", str(out)])


def compile_bindings(
    study: Study,
    toolchain: Toolchain,
    out: Path,
    optimisation: str = OPTIMISATION,
    variant: Variant | None = None,
    host_flags: Sequence[str] = (),
) -> None:
    """Compile the bindings that the study's variants share, or those of `variant` if it does not
    share them (see `bindings_name`)."""
    if study.bindings is None:
        raise HotpathError(f"{study.name}: no bindings.cpp")
    if variant is not None and bindings_name(study, variant) != SHARED_BINDINGS:
        settings = _settings(variant, toolchain)
    else:
        settings = [*defines(study.constants), *_libfabric_flags(toolchain, *study.variants)]
    host_compile(toolchain, study.bindings, [*settings, *host_flags], out, optimisation)


def bindings_name(study: Study, variant: Variant) -> str:
    """Name, without suffix, of the object file with the variant's bindings.

    SHARED_BINDINGS, unless the files of the bindings use a constant or option that differs from the
    study's constants.
    """
    settings = {**variant.constants, **variant.options}
    changed = {name for name, value in settings.items() if study.constants.get(name) != value}
    macros = {name.upper() for name in changed}
    is_used = macros and any(
        macros.intersection(WORD.findall(path.read_text())) for path in bindings_files(study)
    )
    return f"{variant.name}.{SHARED_BINDINGS}" if is_used else SHARED_BINDINGS


def _settings(variant: Variant, toolchain: Toolchain) -> list[str]:
    """Compiler flags of a variant's sources."""
    macros = defines({**variant.constants, **variant.options})
    includes, _ = package_flags(variant)
    return [*macros, *includes, *variant.flags, *_libfabric_flags(toolchain, variant)]


def compile_variant(
    study: Study,
    variant: Variant,
    toolchain: Toolchain,
    arch: str,
    out: Path,
    optimisation: str = OPTIMISATION,
    host_flags: Sequence[str] = (),
) -> str:
    """Compile the variant's source into the object `out`; returns ptxas's report.

    `optimisation` is that of host code; a kernel is always optimised.
    """
    settings = _settings(variant, toolchain)
    if variant.path.suffix != ".cu":
        host_compile(toolchain, variant.path, [*settings, *host_flags], out, optimisation)
        return ""
    host = ",".join(["-fPIC", "-fvisibility=hidden", *host_flags])
    flags = ["-Xptxas=-v", "-lineinfo", f"-Xcompiler={host}"]
    nvcc = _nvcc(toolchain, arch, optimisation)
    return run([*nvcc, *flags, *settings, "-c", str(variant.path), "-o", str(out)])


def _nvcc(toolchain: Toolchain, arch: str, optimisation: str) -> list[str]:
    sm = arch.removeprefix("sm_")
    target = f"-gencode=arch=compute_{sm},code=sm_{sm}"
    return [str(toolchain.nvcc), STANDARD, optimisation, target]


def compile_module(
    study: Study,
    variant: Variant,
    toolchain: Toolchain,
    arch: str,
    bindings: Path,
    out: Path,
    optimisation: str = OPTIMISATION,
) -> None:
    """Link the variant with its `bindings` into `out`; its ptxas report goes beside it as CSV."""
    folder = out.parent
    folder.mkdir(parents=True, exist_ok=True)
    _, link = package_flags(variant)
    compiled = folder / f"{variant.name}.o"
    report = compile_variant(study, variant, toolchain, arch, compiled, optimisation)
    libraries = [f"-L{path}" for path in toolchain.libraries]
    if toolchain.libfabric and _libfabric_flags(toolchain, variant):
        link += toolchain.libfabric.link_flags
    objects = [str(compiled), str(bindings)]
    nvcc = _nvcc(toolchain, arch, optimisation)
    run([*nvcc, "-shared", *objects, *libraries, *link, "-o", str(out)])
    resources = parse_ptxas(report, study.name, variant.name)
    write_records(out.with_suffix(".ptxas.csv"), KernelResources, resources)


def _libfabric_flags(toolchain: Toolchain, *variants: Variant) -> list[str]:
    """Flags of libfabric for `variants`. HotpathError if one needs it and it is not installed."""
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
    parser = program("analysis.toolchain.compile", __doc__)
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
    variant = study.variant(arguments.variant) if arguments.variant else None
    toolchain = find_toolchain(arguments.nvcc, arguments.libfabric)
    if arguments.what == "bindings":
        compile_bindings(study, toolchain, arguments.out, variant=variant)
    else:
        if variant is None:
            parser.error("variant: expected a name, got none")
        compile_module(study, variant, toolchain, arguments.arch, arguments.bindings, arguments.out)


if __name__ == "__main__":
    fail_in_one_line(main)
