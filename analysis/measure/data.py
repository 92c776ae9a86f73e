"""Random inputs for workloads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def random_bytes(size: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """uint8 [size], every bit random. About 20 times as fast as Generator.bytes."""
    words = rng.integers(0, 2**64, -(-size // 8), np.uint64)
    return words.view(np.uint8)[:size]
