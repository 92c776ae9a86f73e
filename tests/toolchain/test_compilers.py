"""Search for compilers and libfabric, and rejection of invalid ones."""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.measure.places import Place
from analysis.toolchain import compilers
from analysis.toolchain.compilers import find_toolchain, require_arch, resolve_arch
from analysis.toolchain.libfabric import MISSING, find_libfabric, has_needed_libfabric
from analysis.toolchain.study_settings import bindings_settings
from tests.compiled import toolchain
from tests.repository import STUDIES


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_locked_compiler_comes_before_any_other_but_the_named_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))  # stops no compiler
    known = toolchain()
    wrapper = script(tmp_path / "my-nvcc", f'exec {shlex.quote(str(known.nvcc))} "$@"')
    assert replace(find_toolchain(str(wrapper)), nvcc=known.nvcc) == known
    locked = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "nvcc")
    if not locked.is_file():
        pytest.skip("this environment is not the locked one")
    monkeypatch.setenv("CUDACXX", str(wrapper))
    assert find_toolchain().nvcc == locked


def test_without_a_locked_compiler_the_environment_names_one_or_it_is_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known = toolchain()
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    folder = known.nvcc.parent
    for name, value in (
        ("CUDACXX", f"{known.nvcc}"),
        ("CUDA_HOME", f"{folder.parent}"),
        ("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}"),
    ):
        with monkeypatch.context() as patch:
            for other in ("CUDACXX", "CUDA_HOME"):
                patch.setenv(other, str(tmp_path / "gone"))
            patch.setenv(name, value)
            assert find_toolchain() == known
    monkeypatch.delenv("CUDACXX", raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        with pytest.raises(HotpathError, match="nvcc: none in this environment, CUDACXX, CUDA_HO"):
            find_toolchain()
    monkeypatch.setattr(sys, "prefix", str(ROOT / ".venv"))
    nvcc = tmp_path / "nvidia" / "cu13" / "bin" / "nvcc"
    makes = f"mkdir -p {nvcc.parent} && ln -s {tmp_path}/my-nvcc {nvcc}"
    installer = script(tmp_path / "run", f"[ $HOTPATH_COMPILER = 1 ] && {makes}")
    script(tmp_path / "my-nvcc", f'exec {shlex.quote(str(known.nvcc))} "$@"')
    monkeypatch.setattr(compilers, "INSTALLER", installer)
    assert find_toolchain().nvcc == nvcc
    nvcc.unlink()
    script(installer, "echo error: no network >&2; exit 1")
    with pytest.raises(HotpathError, match=r"^nvcc: no network$"):
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


@pytest.mark.parametrize("prefix", ["", "usr/"])
def test_libfabric_is_taken_from_a_folder_or_only_its_variants_are_skipped(
    tmp_path: Path, prefix: str
) -> None:
    with pytest.raises(FieldError, match="config: libfabric: expected `auto` or a folder with"):
        find_libfabric(str(tmp_path))
    header = tmp_path / f"{prefix}include/rdma/fabric.h"
    library = tmp_path / f"{prefix}lib/x86_64-linux-gnu/libfabric.so.1"
    for path in (header, library):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    libfabric = find_libfabric(str(tmp_path))
    assert libfabric is not None
    assert (libfabric.include / "rdma" / "fabric.h", libfabric.library) == (header, library)
    for variant in (variant for study in STUDIES.values() for variant in study.variants):
        needs = "libfabric" in variant.needs
        assert has_needed_libfabric(variant.needs, None) is not needs
        assert Place(Path(), "box").unmet(variant) == MISSING or not needs
    with pytest.raises(HotpathError, match="libfabric is not installed"):
        bindings_settings(STUDIES["rdma_write"]).for_tools(replace(toolchain(), libfabric=None))
