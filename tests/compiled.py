"""Compiled code that tests share: built once per content, kept for the next run.

Workers that ask for the same wait for the first of them. Whoever tests compiling itself does not
ask here. Nothing is removed: delete build/tests now and then.
"""

import csv
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pybind11
import pytest
from filelock import FileLock

from analysis import ROOT
from analysis.measure import cpu
from analysis.study import Study, Variant
from analysis.study.source import bindings_files, included_files
from analysis.toolchain import compile as compiling
from analysis.toolchain import modules
from analysis.toolchain.compiled import is_kept
from analysis.toolchain.compilers import Toolchain, find_toolchain, resolve_arch
from analysis.toolchain.modules import (
    bindings_settings,
    compile_bindings,
    compile_module,
    load_module,
    module_path,
    variant_settings,
)
from analysis.toolchain.reports import Row, resources

KEPT = ROOT / "build" / "tests" / "compiled"
ARCH = "sm_90"
QUICK = "-O0"
"""For tests of neither speed nor optimisation."""
HEADERS = ["cuda_runtime.h", "algorithm", "deque", "functional", "map", "mutex", "string", "thread"]
"""Headers that take most of the time of sources that include some of them."""
COMPILING_CODE = [Path(compiling.__file__), Path(modules.__file__)]
"""Files that decide how sources are compiled."""


@cache
def toolchain() -> Toolchain:
    return find_toolchain()


def changed_kernels(folder: Path, *changes: tuple[str, str, str]) -> Path:
    """A copy of kernels/ in `folder` with these changes: a file of a study, a text that it has
    once, and the text that replaces it."""
    root = folder / "kernels"
    root.mkdir()
    studies = {Path(file).parts[0] for file, *_ in changes}
    for path in (ROOT / "kernels").iterdir():
        if path.name in studies:
            shutil.copytree(path, root / path.name)
        else:
            (root / path.name).symlink_to(path)
    for file, right, wrong in changes:
        text = (root / file).read_text()
        assert text.count(right) == 1, f"{file}: {right}"
        (root / file).write_text(text.replace(right, wrong))
    return root


def kept(name: str, made_of: Iterable[Path | str], make: Callable[[Path], None]) -> Path:
    """The folder that `make` fills, once per content of these files and words."""
    digest = hashlib.sha256()
    for part in (*made_of, str(toolchain()), pybind11.__version__, sys.version):
        digest.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        digest.update(b"\0")
    folder = KEPT / f"{name}-{digest.hexdigest()[:16]}"
    KEPT.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            made = Path(tempfile.mkdtemp(dir=KEPT))
            make(made)
            made.rename(folder)
    return folder


def bindings_made_of(study: Study, variant: Variant | None = None) -> list[Path | str]:
    """Inputs of the compilation of the study's shared bindings, or of those of `variant`."""
    settings = repr(bindings_settings(study, variant))
    return [*COMPILING_CODE, *bindings_files(study), settings]


def module_made_of(study: Study, variant: Variant) -> list[Path | str]:
    """Inputs of compiling and linking the variant."""
    sources, settings = included_files(variant.path), repr(variant_settings(variant))
    return [*COMPILING_CODE, *sources, settings, *bindings_made_of(study, variant)]


@cache
def host_flags(optimisation: str = QUICK) -> list[str]:
    """Flags for host code. With QUICK, they include HEADERS, which are compiled once."""
    flags = ["-std=c++20", optimisation, *compiling.HIDDEN, f"-isystem{toolchain().include}"]

    def make(folder: Path) -> None:
        (folder / "headers.h").write_text("".join(f"#include <{one}>\n" for one in HEADERS))
        run(toolchain().cxx, *flags, "-x", "c++-header", f"{folder}/headers.h")

    if optimisation == QUICK:
        flags += ["-include", f"{kept('headers', [*HEADERS, *flags], make)}/headers.h"]
    return flags


def compiled_with(optimisation: str) -> Any:
    """Lets the product compile with these flags, and without warnings, which nobody would read."""
    flags = [*host_flags(optimisation), compiling.COLLECT_LATER]
    return mock.patch.multiple(compiling, OPTIMISATION=optimisation, HOST_ONLY=flags)


def bindings_object(study: Study, optimisation: str, variant: Variant | None = None) -> Path:
    """The study's bindings with its constants, as most of its variants share them, or the variant's
    own."""

    def make(folder: Path) -> None:
        with compiled_with(optimisation):
            compile_bindings(study, variant, folder / "bindings.o", ARCH)

    return kept(f"bindings{optimisation}", bindings_made_of(study, variant), make) / "bindings.o"


def module_file(
    study: Study,
    variant: Variant,
    arch: str = ARCH,
    optimisation: str = compiling.OPTIMISATION,
    of_bindings: str = "",
) -> Path:
    """The variant as a module, in a folder as load_module takes it, its ptxas report beside it. Its
    bindings may have another optimisation."""

    def make(folder: Path) -> None:
        bound = bindings_object(study, of_bindings or optimisation, variant)
        out = module_path(folder, study, variant)
        with compiled_with(optimisation):
            compile_module(variant, bound, out, arch)

    name = f"{study.name}.{variant.name}.{arch}{optimisation}{of_bindings}"
    return module_path(kept(name, module_made_of(study, variant), make), study, variant)


def module(study: Study, variant: Variant, **settings: str) -> ModuleType:
    """The imported variant, compiled if necessary, as module_file does it with these settings."""
    if not variant.is_compiled:
        return load_module(Path(), study, variant)
    return load_module(module_file(study, variant, **settings).parents[1], study, variant)


def kernel_resources(study: Study, variant: Variant, arch: str) -> Sequence[Row]:
    """Resources of the variant's kernels by ptxas: from the repository's table if it belongs to
    this code, else compiled now."""
    tables = ROOT / "compiled" / arch / study.name
    if not is_kept(study, tables):
        return resources(module_file(study, variant, arch, QUICK))
    with (tables / "resources.csv").open(newline="") as file:
        return [row for row in csv.DictReader(file) if row["variant"] == variant.name]


def gpu_module(study: Study, name: str) -> ModuleType:
    """The variant as a module for this machine's GPU."""
    return module(study, study.variant(name), arch=resolve_arch("auto", [0]))


def object_file(source: Path, folder: Path, flags: Sequence[str]) -> Path:
    """`source` compiled with the headers beside it and those of `folder`."""
    # Line numbers are slow to write, and only sanitizers print them.
    debug = ["-g"] if any(flag.startswith("-fsanitize=") for flag in flags) else []
    settings = [compiling.COLLECT_LATER, *debug, f"-I{folder}", *flags]
    command = [toolchain().cxx, *settings, str(source)]
    (read,) = included([source], (f"-I{folder}", *flags))
    make = kept(
        source.name, [*read, *flags], lambda out: run(*command, "-c", "-o", f"{out}/object.o")
    )
    return make / "object.o"


def included(sources: Iterable[Path], flags: Iterable[str] = ()) -> list[list[Path]]:
    """Each source and the files that it includes as the preprocessor finds them, which is fast
    without headers of libraries: they count as generated, so they need not be installed."""
    command = [toolchain().cxx, *(flag for flag in flags if not flag.startswith("-isystem"))]
    command += ["-E", "-MM", "-MG", "-nostdinc", "-w", *map(str, sources)]
    rules = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = rules.replace("\\\n", " ").splitlines()
    return [[path for path in map(Path, line.split()[1:]) if path.is_file()] for line in lines]


def program(
    name: str, sources: Iterable[Path], folder: Path, flags: Sequence[str], *libraries: str
) -> Path:
    """A program compiled from `sources`, of which some may be objects, as object_file does it."""
    objects = [
        source if source.suffix == ".o" else object_file(source, folder, flags)
        for source in sources
    ]
    command = [toolchain().cxx, *flags, *map(str, objects), *libraries]
    return kept(name, command, lambda out: run(*command, "-o", str(out / name))) / name


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def use_built_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flush the CPU's caches by a library compiled here, as the workflow compiles it."""
    source = ROOT / "analysis" / "measure" / "cpu_cache.cpp"
    flags = ("-std=c++20", "-O2", "-Werror", "-fPIC", "-shared")
    built = program("cpu_cache.so", [source], source.parent, flags)
    monkeypatch.setattr(cpu, "LIBRARY", built)
    monkeypatch.setattr(cpu, "_library", cpu._library.__wrapped__)
