"""A study's Python and its compiled variants as modules, and the settings to compile them with."""

import importlib
import importlib.util
import sys
import zlib
from pathlib import Path
from types import ModuleType
from typing import Final

from analysis import BUILD
from analysis.base.errors import HotpathError
from analysis.study import Study, Variant
from analysis.study.source import used_macros
from analysis.toolchain.compile import CompileSettings, link_command, object_command
from analysis.toolchain.compilers import DEFAULT_ARCH, find_toolchain, output_of
from analysis.toolchain.packages import PACKAGES
from analysis.toolchain.reports import REPORT

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
    """Settings of the variant's file. Those without effect on it are left out, so that variants
    with equal settings have the same object."""
    return _settings(variant.path, variant)


def bindings_settings(study: Study, variant: Variant | None = None) -> CompileSettings:
    """Settings of the study's shared bindings, or of the variant's separate bindings if these use a
    constant or option that differs from the study's constants."""
    path = study.folder / "bindings.cpp"
    used = used_macros(path, study.constants)
    if variant is not None and used_macros(path, _macros(variant)) != used:
        return _settings(path, variant)
    # Shared bindings include no package of a single variant.
    needs = {need for each in study.variants for need in each.needs}
    return CompileSettings(used, needs=sorted(needs & {"libfabric"}))


def _settings(path: Path, variant: Variant) -> CompileSettings:
    macros = used_macros(path, _macros(variant), variant.flags)
    needs = [need for need in variant.needs if need in PACKAGES]
    return CompileSettings(macros, variant.flags, needs)


def _macros(variant: Variant) -> dict[str, int | str]:
    return {**variant.constants, **variant.options}


def shared_parts(study: Study) -> dict[str, tuple[str, str]]:
    """What compiled variants share, by variant: the first variant with the same module, often the
    variant itself; and the name, without suffix, of the object with its bindings, which is
    SHARED_BINDINGS or named after the first variant with these separate ones."""
    names, firsts = {bindings_settings(study): SHARED_BINDINGS}, dict[tuple[object, ...], str]()
    parts = {}
    for one in (variant for variant in study.variants if variant.is_compiled):
        name = names.setdefault(bindings_settings(study, one), f"{one.name}.{SHARED_BINDINGS}")
        made_of = one.path, variant_settings(one), name
        parts[one.name] = firsts.setdefault(made_of, one.name), name
    return parts


def compile_bindings(
    study: Study, variant: Variant | None, out: Path, arch: str = DEFAULT_ARCH
) -> None:
    """Compile the study's shared bindings, or those of the variant, into the object `out`.

    HotpathError has the compiler's messages.
    """
    source, settings = study.folder / "bindings.cpp", bindings_settings(study, variant)
    output_of(object_command(source, settings, find_toolchain(), arch, out))


def compile_module(variant: Variant, bindings: Path, out: Path, arch: str = DEFAULT_ARCH) -> None:
    """Compile the variant, link it with the object `bindings` into the module `out`, and write
    ptxas's report beside it. HotpathError has the compiler's messages."""
    out.parent.mkdir(parents=True, exist_ok=True)
    made, how = out.with_suffix(".o"), (variant_settings(variant), find_toolchain(), arch)
    report = output_of(object_command(variant.path, *how, made))
    output_of(link_command([made, bindings], *how, out))
    out.with_suffix(REPORT).write_text(report)
