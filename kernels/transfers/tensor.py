"""A tensor over a piece of host memory, and the tensor that PyTorch creates on the device."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import torch

from analysis.api.torch import use

Move = Callable[[torch.Tensor], torch.Tensor]


class Moved:
    """One tensor of `size` bytes in host memory; `output` is the one on the device."""

    def __init__(self, move: Move, host: int, size: int) -> None:
        self._move = move
        self._tensor = torch.from_numpy(
            np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(host))
        )
        self.output: torch.Tensor | None = None

    def launch(self, stream: int) -> None:
        use(stream)
        self.output = None  # so that the next tensor reuses its memory
        self.output = self._move(self._tensor)


def binding(move: Move) -> Callable[..., Moved]:
    """The bind() of a variant that moves a tensor to the device with `move`."""

    def bind(
        host: int, device: int, *, size: int, count: int = 1, to_device: bool = True, **others: int
    ) -> Moved:
        """Like bindings.cpp, but copies to device memory of PyTorch. ValueError for more than one
        piece, or for the other direction."""
        del device, others
        if count != 1 or not to_device:
            raise ValueError(f"expected one piece to the device, got {count}, {to_device=}")
        return Moved(move, host, size)

    return bind
