"""Search for compilers, and rejection of invalid ones."""

from __future__ import annotations

import os
import re
import shlex
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.toolchain.arch import resolve_arch
from analysis.toolchain.compilers import Toolchain, find_toolchain, require_arch
from tests.compiled import toolchain as found_toolchain


@pytest.fixture
def toolchain() -> Toolchain:
    return found_toolchain()


def test_the_locked_compiler_comes_before_any_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    locked = Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "nvcc")
    if not locked.is_file():
        pytest.skip("this environment is not the locked one")
    (tmp_path / "nvcc").touch()
    monkeypatch.setenv("CUDACXX", str(tmp_path / "nvcc"))
    assert find_toolchain().nvcc == locked


def test_named_compiler_is_found_in_any_folder(toolchain: Toolchain, tmp_path: Path) -> None:
    wrapper = tmp_path / "my-nvcc"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(str(toolchain.nvcc))} "$@"\n')
    wrapper.chmod(0o755)
    named = find_toolchain(str(wrapper))
    assert named.nvcc == wrapper
    assert re.fullmatch(r"\d+\.\d+", named.version)
    assert (named.include / "cuda_runtime.h").exists()
    assert replace(named, nvcc=toolchain.nvcc) == toolchain


@pytest.mark.parametrize("variable", ["CUDACXX", "CUDA_HOME", "PATH"])
def test_without_a_locked_compiler_the_environment_names_one(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    monkeypatch.setattr("analysis.toolchain.compilers.sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.delenv("CUDACXX", raising=False)
    monkeypatch.delenv("CUDA_HOME", raising=False)
    folder = toolchain.nvcc.parent
    value = {
        "CUDACXX": str(toolchain.nvcc),
        "CUDA_HOME": str(folder.parent),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
    }
    monkeypatch.setenv(variable, value[variable])
    assert find_toolchain() == toolchain


def test_no_compiler_anywhere_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("analysis.toolchain.compilers.sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("CUDACXX", str(tmp_path / "gone"))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(HotpathError, match="nvcc: none in this environment, CUDACXX, CUDA_HOME or"):
        find_toolchain()


def test_locked_environment_installs_its_compiler_when_it_is_needed(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("analysis.toolchain.compilers.sysconfig.get_path", lambda _: str(tmp_path))
    for variable in ("CUDACXX", "CUDA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(sys, "prefix", str(ROOT / ".venv"))
    installer, folder = tmp_path / "run", tmp_path / "nvidia" / "cu13" / "bin"
    monkeypatch.setattr("analysis.toolchain.compilers.INSTALLER", installer)
    installer.write_text(
        f"#!/bin/sh\n[ $HOTPATH_COMPILER = 1 ] && mkdir -p {folder}"
        f" && printf '#!/bin/sh\\nexec {toolchain.nvcc} \"$@\"' > {folder}/nvcc"
        f" && chmod +x {folder}/nvcc\n"
    )
    installer.chmod(0o755)
    assert find_toolchain().nvcc == folder / "nvcc"
    (folder / "nvcc").unlink()
    installer.write_text("#!/bin/sh\necho error: no network >&2; exit 1\n")
    with pytest.raises(HotpathError, match=r"^nvcc: no network$"):
        find_toolchain()


def test_invalid_compiler_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(FieldError) as caught:
        find_toolchain(str(tmp_path / "nvcc"))
    assert caught.value.field == "config: nvcc"
    assert str(caught.value).endswith(f"got {str(tmp_path / 'nvcc')!r}")
    with pytest.raises(FieldError, match="expected a CUDA compiler, got '/bin/true'"):
        find_toolchain("/bin/true")
    (tmp_path / "text").touch()
    with pytest.raises(HotpathError, match=r"text: cannot be run"):
        find_toolchain(str(tmp_path / "text"))


def test_a_compiler_that_fails_is_quoted(tmp_path: Path) -> None:
    for script, said in {
        "echo nvcc fatal: no host compiler >&2; exit 1": "nvcc fatal: no host compiler",
        "echo sorry; exit 2": "sorry",
        "exit 7": "exit code 7",
    }.items():
        nvcc = tmp_path / "nvcc"
        nvcc.write_text(f"#!/bin/sh\n{script}\n")
        nvcc.chmod(0o755)
        with pytest.raises(HotpathError, match=f"^{nvcc} --version: {said}$"):
            find_toolchain(str(nvcc))


def test_a_missing_temporary_directory_stops_no_compiler(
    toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    wrapper = tmp_path / "my-nvcc"
    wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(str(toolchain.nvcc))} "$@"\n')
    wrapper.chmod(0o755)
    assert find_toolchain(str(wrapper)).version == toolchain.version
    require_arch("sm_90", wrapper)


def test_unknown_architecture_is_rejected(toolchain: Toolchain) -> None:
    for arch in ("sm_90", "sm_90a", "sm_100f"):
        require_arch(arch, toolchain.nvcc)
    with pytest.raises(FieldError, match=r"config: arch: expected one of .*'sm_90'.*got 'sm_20'$"):
        require_arch("sm_20", toolchain.nvcc)


def test_named_architecture_needs_no_gpu() -> None:
    assert resolve_arch("sm_120", "GPU-of-nobody") == "sm_120"
