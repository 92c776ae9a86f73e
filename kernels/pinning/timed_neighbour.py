"""A neighbour process that times its calls together with the state of its thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from kernels.common.extension import load_extension

from .neighbours import NeighbourProcess

NAME: Final = "timed"
"""The module beside `variant` in the file of the variant."""


def timed_module(module: Any) -> Any:
    """The module `timed` in the file of this variant."""
    return load_extension(str(Path(module.__file__).resolve()), NAME)


def timed_process() -> NeighbourProcess:
    """A process whose neighbour repeats cudaMalloc and cudaFree; `stop` returns Calls."""
    return NeighbourProcess(lambda path: load_extension(path, NAME).TimedNeighbour(), 4)
