"""Choice of the compilers: the locked nvcc, an installed one, or the one that is named."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
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
    if nvcc != "auto":
        if not Path(nvcc).is_file():
            raise FieldError("config: nvcc", "`auto` or the path of a compiler", nvcc)
        return Path(nvcc)
    paths = [Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "nvcc")]
    paths += [
        Path(os.environ.get("CUDACXX", "")),
        Path(os.environ.get("CUDA_HOME", ""), "bin/nvcc"),
    ]
    paths += [Path(shutil.which("nvcc") or "")]
    return next((path for path in paths if path.is_absolute() and path.is_file()), None)


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
    path = find_nvcc()
    if done.returncode != 0 or path is None:
        why = done.stderr.strip().removeprefix("error: ")
        raise HotpathError(f"nvcc: {why or f'{INSTALLER} has not installed one'}")
    return path


def find_cxx() -> str:
    """The C++ compiler that CXX names, else the first in PATH; HotpathError where there is none."""
    cxx = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if cxx is None:
        raise HotpathError("C++ compiler: none in CXX or PATH (Debian: apt install g++)")
    return cxx


def compiling() -> dict[str, str]:
    """The environment for compilers: what one leaves behind that is killed is in the build folder,
    not in the temporary directory."""
    scratch = BUILD / "compilers"
    scratch.mkdir(parents=True, exist_ok=True)
    return os.environ | {"TMPDIR": str(scratch)}


def output_of(command: Sequence[str]) -> str:
    """Output of a compiler; HotpathError with the command and its messages if it fails."""
    try:
        done = subprocess.run(
            command, env=compiling(), capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise HotpathError(f"{command[0]}: cannot be run: {error}") from error
    printed = done.stdout + done.stderr
    if done.returncode != 0:
        raise HotpathError(f"{shlex.join(command)}\n{printed}")
    return printed


@cache
def _describe(nvcc: Path) -> Toolchain:
    version = re.search(r"release (\d+\.\d+)", output_of([str(nvcc), "--version"]))
    if version is None:
        raise FieldError("config: nvcc", "a CUDA compiler", str(nvcc))
    # nvcc itself knows its folders, wherever a distribution has put them.
    null = "/dev/null"
    steps = output_of([str(nvcc), "--dryrun", "-x", "cu", null, "-o", null])
    top = re.search(r"^#\$ TOP=(.+)$", steps, re.MULTILINE)
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
        cxx_version=output_of([cxx, "--version"]).splitlines()[0],
    )


@cache
def _architectures(nvcc: Path) -> list[str]:
    return output_of([str(nvcc), "--list-gpu-code"]).split()


def can_build(arch: str, nvcc: Path) -> bool:
    """Whether `nvcc` can build for `arch`, or for its base: sm_90 for sm_90a."""
    return arch.rstrip("af") in _architectures(nvcc)


def require_arch(arch: str, nvcc: Path) -> None:
    """FieldError unless `nvcc` can build for `arch`."""
    if not can_build(arch, nvcc):
        known = _architectures(nvcc)
        raise FieldError("config: arch", f"one of {known}, which {nvcc} can build for", arch)
