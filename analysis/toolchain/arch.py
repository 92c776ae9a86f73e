"""Choice of the GPU architecture that is compiled for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analysis.base.gpu import GpuError, open_gpus

DEFAULT_ARCH: Final = "sm_90"


def resolve_arch(arch: str, gpus: Sequence[int | str]) -> str:
    """`arch` itself, or for `auto` the architecture of those GPUs, or sm_90 where there is none."""
    if arch != "auto":
        return arch
    try:
        with open_gpus(gpus) as (first, *_):
            return first.arch
    except GpuError:
        return DEFAULT_ARCH
