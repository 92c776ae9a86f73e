"""Draws of the source rows of each launch."""

from __future__ import annotations

import numpy as np

from analysis.api.memory import DeviceArray
from analysis.api.study import Case, FieldError
from kernels.common.draws import consecutive_sets, pairs_of

MIN_SETS = 4
MIN_ROWS_OF_SETS = 2**19
"""Minimum numbers of sets and of rows in all sets: no row or translation may still be cached when
its set is launched again. The first set is only for the check."""


class Launches:
    """Source rows int32 [sets, rows], a set per launch. On a GPU they are pairs int32 [sets, rows,
    2], where row i of a set goes to row i."""

    def __init__(self, sources: np.ndarray) -> None:
        self.sources = sources
        self._pairs: dict[int, DeviceArray] = {}

    def pairs(self, gpu: int) -> int:
        """Address of the pairs in memory of this GPU."""
        if gpu not in self._pairs:
            pairs = pairs_of(self.sources)
            self._pairs[gpu] = DeviceArray(pairs.shape, np.int32, "pairs", gpu)
            self._pairs[gpu].put(pairs)
        return self._pairs[gpu].pointer


def drawn(case: Case, pool_rows: int, rng: np.random.Generator) -> Launches:
    """Distinct rows from anywhere in the pool. FieldError if it has too few."""
    rows, sets = _shape(case, pool_rows)
    sources = [rng.choice(pool_rows, rows, replace=False) for _ in range(sets)]
    return Launches(np.stack(sources).astype(np.int32))


def consecutive(case: Case, pool_rows: int, rng: np.random.Generator) -> Launches:
    """Consecutive rows in each set, from anywhere in the pool."""
    rows, sets = _shape(case, pool_rows)
    return Launches(consecutive_sets(rows, sets, pool_rows, rng))


def _shape(case: Case, pool_rows: int) -> tuple[int, int]:
    """Rows per set, and number of sets."""
    rows = case.number("rows")
    if not 1 <= rows <= pool_rows < 2**31:
        expected = f"1 to {pool_rows}, the rows of the pool, which are fewer than 2^31"
        raise FieldError(f"case {case.id}: rows", expected, rows)
    return rows, max(MIN_SETS, -(-MIN_ROWS_OF_SETS // rows))
