"""Draws of the source rows of each launch, by layout."""

from __future__ import annotations

import re

import numpy as np

from analysis.api.study import Case, FieldError

REQUEST_ROWS = 2048
"""Rows per request."""

STRETCH_ROWS = 32768
"""Consecutive rows from which a request draws in the layout `contiguous`: its context."""

MIN_SETS = 4
MIN_ROWS_OF_SETS = 2**20
"""Minimum numbers of sets and of rows in all sets: no row or translation may still be cached when
its set is launched again."""


def draw_sets(case: Case, pool_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Source rows int32 [sets, rows] below `pool_rows`, a set per launch.

    The case's `layout` is one of

    scattered: any rows, with replacement
    distinct: any rows, none twice in a set
    pages_N: runs of N consecutive rows that start at a multiple of N, as in a paged cache
    contiguous: per request, any rows of one stretch of STRETCH_ROWS rows
    repeated: as scattered, but the same rows in every launch

    FieldError for another layout, or if the pool has too few rows.
    """
    rows, layout = case.number("rows"), str(case["layout"])
    if rows < 1:
        raise FieldError(f"case {case.id}: rows", "at least 1", rows)
    sets = 1 if layout == "repeated" else max(MIN_SETS, -(-MIN_ROWS_OF_SETS // rows))
    drawn = [_draw(case, layout, rows, pool_rows, rng) for _ in range(sets)]
    return np.stack(drawn).astype(np.int32)


def _draw(
    case: Case, layout: str, rows: int, pool_rows: int, rng: np.random.Generator
) -> np.ndarray:
    """Source rows [rows] of one launch."""
    if layout in ("scattered", "repeated"):
        return rng.integers(0, pool_rows, rows)
    if layout == "distinct":
        _require_room(case, rows, pool_rows)
        return rng.choice(pool_rows, rows, replace=False)
    if layout == "contiguous":
        _require_room(case, STRETCH_ROWS, pool_rows)
        starts = rng.integers(0, pool_rows - STRETCH_ROWS, -(-rows // REQUEST_ROWS), endpoint=True)
        return np.repeat(starts, REQUEST_ROWS)[:rows] + rng.integers(0, STRETCH_ROWS, rows)
    if page := re.fullmatch(r"pages_([1-9]\d*)", layout):
        run = int(page[1])
        _require_room(case, run, pool_rows)
        starts = rng.integers(0, pool_rows // run, -(-rows // run)) * run
        return (starts[:, None] + np.arange(run)).ravel()[:rows]
    expected = "scattered, distinct, pages_N, contiguous or repeated"
    raise FieldError(f"case {case.id}: layout", expected, layout)


def _require_room(case: Case, needed: int, pool_rows: int) -> None:
    if needed > pool_rows:
        raise FieldError(f"case {case.id}", f"a pool of at least {needed} rows", pool_rows)
