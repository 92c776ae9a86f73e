"""Loading of built modules from their files."""

from __future__ import annotations

from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any


@cache
def load_extension(path: str, name: str = "variant") -> Any:
    """The module `name` in the .so file at `path`, which may have several.

    pybind11 keeps classes by the module's name, so that of each file is another one.
    """
    loader = ExtensionFileLoader(f"{path}.{name}", path)
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None, "an .so file has a loader"
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module
