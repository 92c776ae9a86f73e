"""Which rows of the pool each launch gathers, by layout."""

from __future__ import annotations

import re

import numpy as np

from analysis.api.study import Case, FieldError

REQUEST_ROWS = 2048
"""Rows of one request."""

STRETCH_ROWS = 32768
"""Rows among which a request's rows lie in the layout `contiguous`: its context."""

FEWEST_SETS = 4
FEWEST_ROWS = 2**20
"""Sets are drawn until both are reached, so that no row or translation is still held when its set
is launched again."""


def draw_sets(case: Case, pool_rows: int, rng: np.random.Generator) -> np.ndarray:
    """Source rows int32 [sets, rows], a set for each launch, each row below `pool_rows`.

    The case's `layout` is one of

    scattered: any rows, with replacement
    distinct: any rows, none twice in a set
    pages_N: runs of N consecutive rows that start at any multiple of N, as in a paged cache
    contiguous: for each request, any rows of one stretch of STRETCH_ROWS rows
    repeated: as scattered, but the same rows with every launch

    FieldError for another layout, or where the pool has too few rows for it.
    """
    rows, layout = case.number("rows"), str(case["layout"])
    if rows < 1:
        raise FieldError(f"case {case.id}: rows", "at least 1", rows)
    sets = 1 if layout == "repeated" else max(FEWEST_SETS, -(-FEWEST_ROWS // rows))
    drawn = [_draw(case, layout, rows, pool_rows, rng) for _ in range(sets)]
    return np.stack(drawn).astype(np.int32)


def consecutive_sets(rows: int, sets: int, pool_rows: int, rng: np.random.Generator) -> np.ndarray:
    """int32 [sets, rows]: in each set, consecutive rows from anywhere in the pool."""
    if rows > pool_rows:
        raise FieldError("rows", f"at most {pool_rows}, which is all of the pool", rows)
    starts = rng.integers(0, pool_rows - rows, sets, endpoint=True)
    return (starts[:, None] + np.arange(rows)).astype(np.int32)


def _draw(
    case: Case, layout: str, rows: int, pool_rows: int, rng: np.random.Generator
) -> np.ndarray:
    """The rows [rows] of one launch."""
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
