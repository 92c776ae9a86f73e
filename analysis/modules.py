"""Import a built variant, or a variant written in Python."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from analysis.errors import HotpathError
from analysis.study import Study, Variant

COMPILED_NAME = "variant"
"""Last part of every compiled module's name, so that one bindings.o serves all variants. The path
before it tells them apart: pybind11 hands out a module it has made before for a name it knows."""


def module_path(modules: Path, study: Study, variant: Variant) -> Path:
    """The file that holds the variant's module once it is built."""
    return modules / study.name / f"{variant.name}.so" if variant.is_compiled else variant.path


def load_module(modules: Path, study: Study, variant: Variant) -> ModuleType:
    """Import the variant. HotpathError where it has not been built."""
    path = module_path(modules, study, variant)
    if not path.exists():
        raise HotpathError(f"{path}: not built; run: snakemake --cores all build")
    if variant.is_compiled:
        return _load(path, f"{path}.{COMPILED_NAME}")
    return _load_python(study, path)


def load_workload(study: Study) -> ModuleType:
    """Import the study's workload.py."""
    return _load_python(study, study.folder / "workload.py")


def _load_python(study: Study, path: Path) -> ModuleType:
    # A package of the study's own, so that its files can import each other: `from .other import x`.
    package = sys.modules.setdefault(study.name, ModuleType(study.name))
    package.__path__ = [str(study.folder)]
    name = f"{study.name}.{path.stem}"
    return sys.modules.get(name) or _load(path, name)


def _load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise HotpathError(f"{path}: cannot be imported")
    module = importlib.util.module_from_spec(spec)
    if path.suffix == ".py":
        sys.modules[name] = module  # dataclasses look their module up here
    spec.loader.exec_module(module)
    return module
