"""Variants that are linked with packages of Python: their flags, and modules with and without."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.toolchain.modules import module_path
from analysis.toolchain.packages import PACKAGES, Package, package_flags, package_versions
from tests.compiled import compile_bindings, compile_module, toolchain
from tests.toolchain.numbers import make_study

RMM_OR_NOT = """\
#if __has_include(<rmm/pool.hpp>)
#include <rmm/pool.hpp>
int number() { return pool() + CCCL; }
#else
int number() { return 0; }
#endif
"""
LOAD = """\
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
spec = spec_from_loader("variant", ExtensionFileLoader("variant", sys.argv[1]))
print(module_from_spec(spec).number(), end="")
"""
"""Prints the number of a module at a path."""


def install(site: Path, module: str, distribution: str, version: str) -> Path:
    """An empty package in a folder that Python looks into, as a wheel would leave it."""
    for folder in (site / module, site / f"{distribution.replace('-', '_')}-{version}.dist-info"):
        folder.mkdir(parents=True)
    (site / module / "__init__.py").touch()
    (folder / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n")
    return site / module


def test_a_package_of_several_distributions_is_linked_unless_it_is_too_old(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    flags = ["-I."], list[str]()
    package = Package("Boxes", "boxes", ("boxes-cu13", "boxes-cu12"), lambda _: flags, (26, 6))
    assert package.unmet == "Boxes is not installed"
    install(tmp_path, "boxes", "boxes-cu12", "26.6.0")
    torch = install(tmp_path, "torch", "torch", "2.9.1")
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    assert package_flags(["gpu", "torch"]) == ([], [])
    monkeypatch.delitem(sys.modules, "torch")
    monkeypatch.syspath_prepend(tmp_path)
    includes, link = package_flags(["gpu", "torch"])
    assert includes == ["-isystem", str(torch / "include")] and f"-L{torch / 'lib'}" in link
    assert package_versions(["gpu", "torch"]) == {"torch": "2.9.1"}
    assert (package.root, package.version) == (tmp_path / "boxes", "26.6.0")
    newer = replace(package, oldest=(26, 10))
    assert newer.unmet == "needs Boxes 26.10 or newer, 26.6.0 is installed"
    for found, expected in ((newer, ([], [])), (package, flags)):
        monkeypatch.setitem(PACKAGES, "torch", found)
        assert package_flags(["torch"]) == expected


def test_a_variant_that_needs_rmm_is_linked_with_it_and_builds_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    entries = [{"name": "pool", "needs": ["gpu", "rmm"]}]
    study = make_study(tmp_path / "numbers", entries, {"pool.cpp": RMM_OR_NOT})
    bindings = tmp_path / "bindings.o"
    compile_bindings(study, bindings)

    def number(folder: Path) -> str:
        out = module_path(folder, study, study.variants[0])
        compile_module(study, study.variants[0], bindings, out)
        # In a separate process, because this one may have loaded the real RMM.
        command = [sys.executable, "-c", LOAD, str(out)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    monkeypatch.setitem(sys.modules, "librmm", None)  # as if it were not installed
    assert number(tmp_path / "without") == "0"
    monkeypatch.delitem(sys.modules, "librmm")
    install_rmm(tmp_path / "site")
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert number(tmp_path / "with") == "42"


def install_rmm(site: Path) -> None:
    """Layout of the wheels of librmm and its logger, which librmm.so does not find by itself."""
    root = install(site, "librmm", "librmm-cu13", "26.10.0")
    logger = install(site, "rapids_logger", "rapids-logger", "0.3.0")
    files = {
        root / "include" / "rmm" / "pool.hpp": "#include <cccl.h>\nint pool();\n",
        root / "include" / "rapids" / "cccl.h": "#define CCCL 2\n",
        root / "pool.cpp": "#include <log.h>\nint pool() { return log_level(); }\n",
        logger / "include" / "log.h": "int log_level();\n",
        logger / "log.cpp": "int log_level() { return 40; }\n",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for source, name in ((logger / "log.cpp", "rapids_logger"), (root / "pool.cpp", "rmm")):
        folder = source.with_name("lib64")
        folder.mkdir()
        command = [toolchain().cxx, "-shared", "-fPIC", f"-Wl,-soname=lib{name}.so", str(source)]
        command += [f"-I{logger / 'include'}", "-o", str(folder / f"lib{name}.so")]
        command += [f"-L{logger / 'lib64'}", "-lrapids_logger"] if name == "rmm" else []
        subprocess.run(command, check=True)
