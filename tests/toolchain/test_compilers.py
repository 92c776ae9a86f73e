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
from analysis.toolchain.compilers import Toolchain, find_toolchain, require_arch, resolve_arch
from analysis.toolchain.libfabric import MISSING, find_libfabric, has_needed_libfabric
from analysis.toolchain.study_settings import bindings_settings
from tests.compiled import toolchain as found_toolchain
from tests.repository import STUDIES

LOCKED = "analysis.toolchain.compilers.sysconfig.get_path"


@pytest.fixture
def toolchain() -> Toolchain:
    return found_toolchain()


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_locked_compiler_comes_before_any_other_but_the_named_one(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))  # stops no compiler
    wrapper = script(tmp_path / "my-nvcc", f'exec {shlex.quote(str(toolchain.nvcc))} "$@"')
    named = find_toolchain(str(wrapper))
    assert (named.include / "cuda_runtime.h").exists()
    assert replace(named, nvcc=toolchain.nvcc) == toolchain
    locked = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "nvcc")
    if not locked.is_file():
        pytest.skip("this environment is not the locked one")
    monkeypatch.setenv("CUDACXX", str(wrapper))
    assert find_toolchain().nvcc == locked


def test_without_a_locked_compiler_the_environment_names_one_or_it_is_installed(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(LOCKED, lambda _: str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    folder = toolchain.nvcc.parent
    for name, value in (
        ("CUDACXX", f"{toolchain.nvcc}"),
        ("CUDA_HOME", f"{folder.parent}"),
        ("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}"),
    ):
        with monkeypatch.context() as patch:
            for other in ("CUDACXX", "CUDA_HOME"):
                patch.setenv(other, str(tmp_path / "gone"))
            patch.setenv(name, value)
            assert find_toolchain() == toolchain
    monkeypatch.delenv("CUDACXX", raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        with pytest.raises(HotpathError, match="nvcc: none in this environment, CUDACXX, CUDA_HO"):
            find_toolchain()
    monkeypatch.setattr(sys, "prefix", str(ROOT / ".venv"))
    folder = tmp_path / "nvidia" / "cu13" / "bin"
    installer = script(
        tmp_path / "run",
        f"[ $HOTPATH_COMPILER = 1 ] && mkdir -p {folder}"
        f" && printf '#!/bin/sh\\nexec {toolchain.nvcc} \"$@\"' > {folder}/nvcc"
        f" && chmod +x {folder}/nvcc",
    )
    monkeypatch.setattr("analysis.toolchain.compilers.INSTALLER", installer)
    assert find_toolchain().nvcc == folder / "nvcc"
    (folder / "nvcc").unlink()
    script(installer, "echo error: no network >&2; exit 1")
    with pytest.raises(HotpathError, match=r"^nvcc: no network$"):
        find_toolchain()


def test_invalid_compiler_is_rejected_in_its_words(tmp_path: Path) -> None:
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


def test_unknown_architecture_is_rejected(toolchain: Toolchain) -> None:
    for arch in ("sm_90", "sm_90a", "sm_100f"):
        require_arch(arch, toolchain.nvcc)
    with pytest.raises(FieldError, match=r"config: arch: expected one of .*'sm_90'.*got 'sm_20'$"):
        require_arch("sm_20", toolchain.nvcc)
    assert resolve_arch("sm_120", "GPU-of-nobody") == "sm_120"  # a named one needs no GPU


@pytest.mark.parametrize("prefix", ["", "usr/"])
def test_libfabric_is_taken_from_a_folder(tmp_path: Path, prefix: str) -> None:
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
    assert f"-idirafter{libfabric.include}" in libfabric.compile_flags


def test_without_libfabric_only_its_variants_are_skipped() -> None:
    for variant in (variant for study in STUDIES.values() for variant in study.variants):
        needs = "libfabric" in variant.needs
        assert has_needed_libfabric(variant.needs, None) is not needs
        if needs:
            assert Place(Path(), "box").unmet(variant) == MISSING
            assert Place(Path(), "box", libfabric=True).unmet(variant) is None
    with pytest.raises(HotpathError, match="libfabric is not installed"):
        without = replace(found_toolchain(), libfabric=None)
        bindings_settings(STUDIES["rdma_write"]).for_tools(without)
