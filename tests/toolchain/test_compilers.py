"""Search for compilers and libfabric, and rejection of invalid ones."""

import os
import shlex
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.base.errors import FieldError, HotpathError
from analysis.toolchain import packages
from analysis.toolchain.compilers import find_toolchain, require_arch, resolve_arch
from tests.compiled import toolchain


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_named_compiler_comes_first_then_the_locked_one_then_the_environments(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))  # stops no compiler
    known = toolchain()
    wrapper = script(tmp_path / "my-nvcc", f'exec {shlex.quote(str(known.nvcc))} "$@"')
    assert replace(find_toolchain(str(wrapper)), nvcc=known.nvcc) == known
    locked = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "nvcc")
    monkeypatch.setenv("CUDACXX", str(wrapper))
    assert find_toolchain().nvcc == (locked if locked.is_file() else wrapper)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    for variable in ("CUDACXX", "CUDA_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "gone"))
    folder = known.nvcc.parent
    for variable, value in (
        ("CUDACXX", f"{known.nvcc}"),
        ("CUDA_HOME", f"{folder.parent}"),
        ("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(variable, value)
            assert find_toolchain() == known
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HotpathError, match="nvcc: none in this environment, CUDACXX, CUDA_HOME or"):
        find_toolchain()


def test_invalid_compilers_and_architectures_are_rejected_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "nvcc"
    with pytest.raises(FieldError, match=r"^config: nvcc: expected .* got '.*/nvcc'$"):
        find_toolchain(str(path))
    path.touch()
    for text, message in (
        ("", r"nvcc: cannot be run"),
        ("true", "expected a CUDA compiler, got"),
        ("echo nvcc fatal: no host compiler >&2; exit 1", "--version\nnvcc fatal: no host compil"),
    ):
        if text:
            script(path, text)
        with pytest.raises(HotpathError, match=message):
            find_toolchain(str(path))
    for arch in ("sm_90", "sm_90a", "sm_100f"):
        require_arch(arch, toolchain().nvcc)
    with pytest.raises(FieldError, match=r"config: arch: expected one of .*'sm_90'.*got 'sm_20'$"):
        require_arch("sm_20", toolchain().nvcc)
    assert resolve_arch("sm_120", "GPU-of-nobody") == "sm_120"  # a named one needs no GPU


def test_libfabric_is_taken_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "PREFIXES", (tmp_path,))
    header = tmp_path / "include/rdma/fabric.h"
    library = tmp_path / "lib/x86_64-linux-gnu/libfabric.so.1"
    for path in (header, library):
        reason = packages.PACKAGES["libfabric"].unmet
        assert reason == "libfabric (libfabric-dev, or env/libfabric) is not installed"
        assert packages.package_flags(["libfabric"]) == ([], [])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert packages.PACKAGES["libfabric"].unmet is None
    includes, link = packages.package_flags(["gpu", "libfabric"])
    assert includes == [f"-idirafter{header.parents[1]}"]
    assert link[:2] == [f"-L{library.parent}", f"-l:{library.name}"]
