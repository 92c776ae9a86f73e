"""Selection of the GPU architecture to compile for."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.base.errors import HotpathError
from analysis.base.gpu import GpuError, open_gpus
from analysis.toolchain.compilers import DEFAULT_ARCH, Toolchain, can_build, find_nvcc

AUTO = "auto"


class UnsupportedGpu(HotpathError):
    """The compiler cannot build for this GPU."""


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
