"""Choice of the compilers and of the GPU architecture to compile for."""

import os
import re
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from analysis import BUILD
from analysis.base.errors import FieldError, HotpathError
from analysis.base.gpu import GpuError, open_gpus

AUTO: Final = "auto"
DEFAULT_ARCH: Final = "sm_90"
SCRATCH: Final = BUILD / "compilers"
"""Folder for temporary files of compilers: what a killed one leaves behind is not in /tmp."""


class UnsupportedGpu(HotpathError):
    """The compiler cannot build for this GPU."""


@dataclass(frozen=True)
class Toolchain:
    """A CUDA compiler, its version (as `13.0`), its headers, libraries, and the C++ compiler."""

    nvcc: Path
    version: str
    include: Path
    libraries: tuple[Path, ...]
    cxx: str
    cxx_version: str


def find_toolchain(nvcc: str = AUTO) -> Toolchain:
    """The toolchain of the compiler that find_nvcc finds; HotpathError if there is none."""
    if (path := find_nvcc(nvcc)) is None:
        where = "in this environment, CUDACXX, CUDA_HOME or PATH"
        raise HotpathError(f"nvcc: none {where}; HOTPATH_COMPILER=1 env/run true installs one")
    return _describe(path)


def find_nvcc(nvcc: str = AUTO) -> Path | None:
    """The compiler `nvcc` names, or with `auto` the locked one, then CUDACXX, CUDA_HOME and PATH.

    None if none of these exists; FieldError if a named one does not.
    """
    if nvcc != AUTO:
        if not Path(nvcc).is_file():
            raise FieldError("config: nvcc", "`auto` or the path of a compiler", nvcc)
        return Path(nvcc)
    paths = [
        Path(sysconfig.get_path("purelib"), "nvidia", "cu13", "bin", "nvcc"),
        Path(os.environ.get("CUDACXX", "")),
        Path(os.environ.get("CUDA_HOME", ""), "bin/nvcc"),
        Path(shutil.which("nvcc") or ""),
    ]
    return next((path for path in paths if path.is_absolute() and path.is_file()), None)


def find_cxx() -> str:
    """The C++ compiler that CXX names, else the first in PATH; HotpathError where there is none."""
    cxx = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if cxx is None:
        raise HotpathError("C++ compiler: none in CXX or PATH (Debian: apt install g++)")
    return cxx


def output_of(command: Sequence[str]) -> str:
    """Output of a compiler; HotpathError with the command and its messages if it fails."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"TMPDIR": str(SCRATCH)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
    except OSError as error:
        raise HotpathError(f"{command[0]}: cannot be run: {error}") from error
    printed = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode != 0:
        raise HotpathError(f"{shlex.join(command)}\n{printed}")
    return printed


@cache
def _describe(nvcc: Path) -> Toolchain:
    version = re.search(r"release (\d+\.\d+)", output_of([str(nvcc), "--version"]))
    # nvcc itself knows its folders, wherever a distribution has put them.
    null = "/dev/null"
    steps = output_of([str(nvcc), "--dryrun", "-x", "cu", null, "-o", null])
    top = re.search(r"^#\$ TOP=(.+)$", steps, re.MULTILINE)
    if version is None or top is None:
        raise FieldError("config: nvcc", "a CUDA compiler", str(nvcc))
    root = Path(top[1]).resolve()
    includes = [root / "include", root / "targets" / "x86_64-linux" / "include"]
    include = next((path for path in includes if (path / "cuda_runtime.h").exists()), None)
    if include is None:
        raise HotpathError(f"{nvcc}: cuda_runtime.h not found in any of {list(map(str, includes))}")
    folders = [root / name for name in ("lib64", "lib", "targets/x86_64-linux/lib")]
    libraries = tuple(filter(Path.is_dir, folders))
    cxx = find_cxx()
    cxx_version = output_of([cxx, "--version"]).splitlines()[0]
    return Toolchain(nvcc, version[1], include, libraries, cxx, cxx_version)


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


def resolve_arch(arch: str, gpus: Sequence[int | str], nvcc: str = AUTO) -> str:
    """`arch` itself, or for `auto` the architecture of the first of `gpus`; DEFAULT_ARCH if there
    is no usable GPU, or an installed compiler cannot build for it."""
    if arch != AUTO:
        return arch
    try:
        with open_gpus(gpus) as (first, *_):
            of_gpu = first.arch
    except GpuError:
        return DEFAULT_ARCH
    compiler = find_nvcc(nvcc)
    return of_gpu if compiler is None or can_build(of_gpu, compiler) else DEFAULT_ARCH


def require_supported(arch: str, of_gpu: str, toolchain: Toolchain) -> None:
    """UnsupportedGpu if `arch` is `auto` and the compiler cannot build for the GPU's, `of_gpu`."""
    if arch == AUTO and not can_build(of_gpu, toolchain.nvcc):
        cuda = toolchain.version.partition(".")[0]
        raise UnsupportedGpu(
            f"this GPU is {of_gpu}: CUDA {cuda} cannot compile for it, nothing is measured here"
        )
