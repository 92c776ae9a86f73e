"""A study's Python and its compiled variants as modules, and the settings to compile them with."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Final

from analysis import BUILD
from analysis.base.errors import HotpathError
from analysis.study import Study, Variant
from analysis.study.source import bindings_files
from analysis.toolchain.compile import CompileSettings

SHARED_BINDINGS: Final = "bindings"
COMPILED_NAME: Final = "variant"
"""Last part of every compiled module's name, so that one bindings.o serves all variants. The path
before it distinguishes them: pybind11 hands out a module it has made before for a name it knows."""


def built_modules(arch: str) -> Path:
    """The folder of the modules built for this architecture."""
    return BUILD / "modules" / arch


def module_path(modules: Path, study: Study, variant: Variant) -> Path:
    """The file that holds the variant's module once it is built."""
    return modules / study.name / f"{variant.name}.so" if variant.is_compiled else variant.path


def load_module(modules: Path, study: Study, variant: Variant) -> ModuleType:
    """Import the variant, compiled ones from the folder `modules`.

    HotpathError where it has not been built.
    """
    if not variant.is_compiled:
        return load_python(study, variant.path.stem)
    path = module_path(modules, study, variant)
    if not path.exists():
        build = f"snakemake --cores all build --config 'studies=[\"{study.name}\"]'"
        raise HotpathError(f"{path}: not built; run: {build}")
    spec = importlib.util.spec_from_file_location(f"{path}.{COMPILED_NAME}", path)
    assert spec is not None and spec.loader is not None, "an .so file has a loader"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_python(study: Study, name: str) -> ModuleType:
    """Import `name`.py of the study's folder, once a process; HotpathError where there is none.

    The files of a study are a package and import each other as `from .other import x`. The
    package has a private name of its folder's, so that no study hides a module or another study.
    """
    path = study.folder / f"{name}.py"
    if not path.is_file():
        raise HotpathError(f"{path}: no such file")
    package = f"_study_{study.name}_{zlib.crc32(str(study.folder.resolve()).encode()):08x}"
    if package not in sys.modules:
        module = ModuleType(package)
        module.__path__ = [str(study.folder)]
        sys.modules[package] = module
    importlib.invalidate_caches()  # the file may be younger than the last look into its folder
    return importlib.import_module(f"{package}.{name}")


def variant_settings(variant: Variant) -> CompileSettings:
    """Settings of the variant's file."""
    return CompileSettings({**variant.constants, **variant.options}, variant.flags, variant.needs)


def bindings_settings(study: Study, variant: Variant | None = None) -> CompileSettings:
    """Settings of the study's shared bindings, or of the variant's separate bindings if it has some
    (see `bindings_name`)."""
    if variant is not None and bindings_name(study, variant) != SHARED_BINDINGS:
        return variant_settings(variant)
    # Shared bindings include no package of a single variant.
    needs = {need for each in study.variants for need in each.needs}
    return CompileSettings(study.constants, needs=sorted(needs & {"libfabric"}))


def bindings_name(study: Study, variant: Variant) -> str:
    """Name, without suffix, of the object file with the variant's bindings.

    SHARED_BINDINGS, unless the files of the bindings use a constant or option that differs from the
    study's constants.
    """
    macros = variant_settings(variant).macros
    changed = {name.upper() for name in macros if study.constants.get(name) != macros[name]}
    is_used = changed and any(
        changed.intersection(re.findall(r"\w+", path.read_text())) for path in bindings_files(study)
    )
    return f"{variant.name}.{SHARED_BINDINGS}" if is_used else SHARED_BINDINGS
