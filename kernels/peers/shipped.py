"""Copies of scattered rows that serving engines ship, from the memory of the second GPU."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch

from analysis.api.measure import PythonLauncher
from analysis.api.torch import use
from kernels.common.shipped import OPERATORS, load_copy

from .outputs import GUARD_ROWS
from .reduction import DeviceNumbers

plan: Final = {
    "rows_in": "peer",
    "moved_by": "first",
    "written_to": "first",
    "how": "gather",
    "beside": "none",
}


@dataclass(frozen=True, kw_only=True)
class Part:
    """The same arguments as those of bindings.cpp."""

    gpu: int
    pool: int
    pool_rows: int
    dst: int
    pairs: int
    begin: int
    rows: int
    row_bytes: int
    is_neighbour: bool
    sources: Sequence[int]
    set_rows: int


class Bound(PythonLauncher):
    """Launches of one part: the first of the first set, later ones of the others in turns."""

    def __init__(
        self, parts: Sequence[Part], *, gpus: int, cpus: Sequence[int], operator: str
    ) -> None:
        del gpus, cpus
        (part,) = parts
        words = part.row_bytes // 4
        pool = _numbers(1, part.pool, part.pool_rows, words).view(torch.uint8)
        dst = _numbers(0, part.dst, part.rows + GUARD_ROWS, words).view(torch.uint8)
        pairs = _numbers(0, part.pairs, len(part.sources), part.set_rows, 2).long()
        sources, targets = pairs.unbind(-1)
        if OPERATORS[operator].takes_addresses:
            sources = sources * part.row_bytes + part.pool
            targets = targets * part.row_bytes + part.dst
        self._sets = list(zip(sources.contiguous(), targets.contiguous(), strict=True))
        chosen = OPERATORS[operator]
        self._copy = chosen.bind(pool, dst, part.rows, chosen.blocks)
        self.restart()

    def restart(self) -> None:
        self._launched = 0

    def rejoin(self, stream: int) -> None:
        """There are no neighbours."""

    def _launch(self, stream: int) -> None:  # PythonLauncher times it
        use(stream)
        launched, later = self._launched, len(self._sets) - 1
        self._launched += 1
        self._copy(*self._sets[0 if launched == 0 else 1 + (launched - 1) % later])


def _numbers(gpu: int, pointer: int, *shape: int) -> torch.Tensor:
    """Memory of a GPU as int32 of this shape."""
    numbers = DeviceNumbers(pointer, math.prod(shape))
    with torch.cuda.device(gpu):
        return torch.as_tensor(numbers, device=f"cuda:{gpu}").view(shape)


def load(operator: str) -> None:
    """Compile and load the operator."""
    load_copy(operator)
