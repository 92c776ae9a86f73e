"""Random inputs of workloads."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.api.measure import threads

PIECE_WORDS: Final = 2**20


def random_bytes(size: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """uint8 [size], every bit random, drawn by all CPUs that this process may use.

    Not to be called from a thread of `threads()`, which it waits for.
    """
    words = np.empty(-(-size // 8), np.uint64)
    starts = range(0, len(words), PIECE_WORDS)

    def draw(start: int, of_piece: np.random.Generator) -> None:
        piece = words[start : start + PIECE_WORDS]
        piece[:] = of_piece.integers(0, 2**64, len(piece), np.uint64)  # other threads run meanwhile

    list(threads().map(draw, starts, rng.spawn(len(starts))))
    return words.view(np.uint8)[:size]
