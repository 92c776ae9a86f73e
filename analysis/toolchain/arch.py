"""Selection of the GPU architecture to compile for."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.base.gpu import GpuError, open_gpus
from analysis.toolchain.compilers import DEFAULT_ARCH


def resolve_arch(arch: str, gpus: Sequence[int | str]) -> str:
    """`arch` itself, or for `auto` the architecture of the first of `gpus`; DEFAULT_ARCH if no GPU
    is found."""
    if arch != "auto":
        return arch
    try:
        with open_gpus(gpus) as (first, *_):
            return first.arch
    except GpuError:
        return DEFAULT_ARCH
