"""Choice of the compilers: the locked nvcc, an installed one, or the one that is named."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from analysis import BUILD, ROOT
from analysis.base.errors import FieldError, HotpathError
from analysis.toolchain.libfabric import Libfabric, find_libfabric

DEFAULT_ARCH = "sm_90"

INSTALLER = ROOT / "env" / "run"
"""Adds the locked compiler to the environment .venv when WITH_COMPILER is set."""
WITH_COMPILER = "HOTPATH_COMPILER"


@dataclass(frozen=True)
class Toolchain:
    """A CUDA compiler, its version (as `13.0`), its headers, libraries, and the C++ compiler;
    libfabric where it is installed."""

    nvcc: Path
    version: str
    include: Path
    libraries: tuple[Path, ...]
    cxx: str
    cxx_version: str
    libfabric: Libfabric | None = None


def find_toolchain(nvcc: str = "auto", libfabric: str = "auto") -> Toolchain:
    """The toolchain of the compiler that find_nvcc finds; if there is none, of the locked compiler,
    which is then installed. `libfabric` as find_libfabric takes it.

    Raises HotpathError if no compiler is found and none can be installed.
    """
    path = find_nvcc(nvcc) or _install_nvcc()
    return replace(_describe(path), libfabric=find_libfabric(libfabric))


def find_nvcc(nvcc: str = "auto") -> Path | None:
    """The compiler `nvcc` names, or with `auto` the locked one, then CUDACXX, CUDA_HOME and PATH.

    None if none of these exists; FieldError if a named one does not.
    """
    if nvcc == "auto":
        return next(_candidates(), None)
    path = Path(nvcc)
    if not path.is_file():
        raise FieldError("config: nvcc", "`auto` or the path of a compiler", nvcc)
    return path


def _install_nvcc() -> Path:
    """Install the locked compiler, which a site of committed results does not need.

    HotpathError outside of the locked environment, or if the installation fails.
    """
    if Path(sys.prefix) != ROOT / ".venv":
        raise HotpathError("nvcc: none in this environment, CUDACXX, CUDA_HOME or PATH")
    print("Installing the CUDA compiler", file=sys.stderr)
    environment = os.environ | {WITH_COMPILER: "1"}
    done = subprocess.run(
        [str(INSTALLER), "true"], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise HotpathError(f"nvcc: {done.stderr.strip().removeprefix('error: ')}")
    path = next(_candidates(), None)
    if path is None:
        raise HotpathError(f"nvcc: {INSTALLER} has not installed one")
    return path


def find_cxx() -> str:
    """The C++ compiler that CXX names, else the first in PATH; HotpathError where there is none."""
    cxx = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if cxx is None:
        raise HotpathError("C++ compiler: none in CXX or PATH (Debian: apt install g++)")
    return cxx


def _candidates() -> Iterator[Path]:
    paths = [Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "nvcc")]
    if cudacxx := os.environ.get("CUDACXX"):
        paths.append(Path(cudacxx))
    if home := os.environ.get("CUDA_HOME"):
        paths.append(Path(home, "bin", "nvcc"))
    if found := shutil.which("nvcc"):
        paths.append(Path(found))
    return (path for path in paths if path.is_file())


def compiling() -> dict[str, str]:
    """The environment for compilers: what one leaves behind that is killed is in the build folder,
    not in the temporary directory."""
    scratch = BUILD / "compilers"
    scratch.mkdir(parents=True, exist_ok=True)
    return os.environ | {"TMPDIR": str(scratch)}


@cache
def _describe(nvcc: Path) -> Toolchain:
    version = re.search(r"release (\d+\.\d+)", _output(str(nvcc), "--version"))
    if version is None:
        raise FieldError("config: nvcc", "a CUDA compiler", str(nvcc))
    # nvcc itself knows its folders, wherever a distribution has put them.
    dry_run = subprocess.run(
        [str(nvcc), "--dryrun", "-x", "cu", "/dev/null", "-o", "/dev/null"],
        env=compiling(),
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    top = re.search(r"^#\$ TOP=(.+)$", dry_run, re.MULTILINE)
    root = Path(top[1]).resolve() if top else nvcc.resolve().parent.parent
    includes = [root / "include", root / "targets" / "x86_64-linux" / "include"]
    include = next((path for path in includes if (path / "cuda_runtime.h").exists()), None)
    if include is None:
        raise HotpathError(f"{nvcc}: cuda_runtime.h not found in any of {list(map(str, includes))}")
    folders = [root / name for name in ("lib64", "lib", "targets/x86_64-linux/lib")]
    cxx = find_cxx()
    return Toolchain(
        nvcc=nvcc,
        version=version[1],
        include=include,
        libraries=tuple(folder for folder in folders if folder.is_dir()),
        cxx=cxx,
        cxx_version=_output(cxx, "--version").splitlines()[0],
    )


def _output(*command: str) -> str:
    """Output of a compiler; HotpathError in its words if it fails."""
    try:
        done = subprocess.run(
            command, env=compiling(), capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise HotpathError(f"{command[0]}: cannot be run: {error}") from error
    if done.returncode != 0:
        said = " ".join((done.stderr + done.stdout).split()) or f"exit code {done.returncode}"
        raise HotpathError(f"{shlex.join(command)}: {said}")
    return done.stdout


@cache
def _architectures(nvcc: Path) -> list[str]:
    return _output(str(nvcc), "--list-gpu-code").split()


def can_build(arch: str, nvcc: Path) -> bool:
    """Whether `nvcc` can build for `arch`, or for its base: sm_90 for sm_90a."""
    return arch.rstrip("af") in _architectures(nvcc)


def require_arch(arch: str, nvcc: Path) -> None:
    """FieldError unless `nvcc` can build for `arch`."""
    if not can_build(arch, nvcc):
        known = _architectures(nvcc)
        raise FieldError("config: arch", f"one of {known}, which {nvcc} can build for", arch)
