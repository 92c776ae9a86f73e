"""Rows of gathers: draws of source rows, and their pairs with destination rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.api.study import FieldError

Rows = npt.NDArray[np.int32]


def consecutive_sets(rows: int, sets: int, pool_rows: int, rng: np.random.Generator) -> Rows:
    """Source rows int32 [sets, rows], consecutive in each set, from anywhere in the pool.
    FieldError if it has fewer rows than a set."""
    if rows > pool_rows:
        raise FieldError("rows", f"at most {pool_rows}, which is all of the pool", rows)
    starts = rng.integers(0, pool_rows - rows, sets, endpoint=True)
    return (starts[:, None] + np.arange(rows)).astype(np.int32)


def pairs_of(sources: Rows) -> Rows:
    """Pairs int32 [..., rows, 2] of (source row, destination row) of the source rows int32 [...,
    rows]: row i of a set goes to row i."""
    destinations = np.broadcast_to(np.arange(sources.shape[-1], dtype=np.int32), sources.shape)
    return np.stack([sources, destinations], axis=-1)
