"""Row ids of every step, and the places of a context's rows in the pool."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from analysis.api.study import FieldError

NEAR_PER_SLOT = 2
"""Rows of the neighbourhood from which the traces `kept_S` draw, per slot."""

MOVES_PER_STEP = 0.02
"""Share of top-k by which that neighbourhood moves on in a step."""

HOT_ONE_IN = 8
HOT_WEIGHT = 8.0
"""One row in HOT_ONE_IN is drawn from the neighbourhood HOT_WEIGHT times as often as others."""

_EXPECTED = "misses_N, kept_S, all_new, all_same, one_more or twice, and _consecutive behind it"


@dataclass(frozen=True)
class Shape:
    """Size of a trace: `topk` rows of each of `requests` in each of `steps`, for buffers of `slots`
    rows and contexts of `context_rows` rows."""

    requests: int
    topk: int
    slots: int
    context_rows: int
    steps: int

    def __post_init__(self) -> None:
        for name in ("requests", "topk", "slots", "context_rows", "steps"):
            if getattr(self, name) < 1:
                raise FieldError(name, "at least 1", getattr(self, name))
        if self.topk > self.slots:
            raise FieldError("topk", f"at most {self.slots}, the number of slots", self.topk)
        if self.context_rows < self.slots:
            expected = f"at least {self.slots}, the number of slots"
            raise FieldError("context_rows", expected, self.context_rows)

    @property
    def warmup_steps(self) -> int:
        """Steps of new rows until all slots are occupied."""
        return -(-self.slots // self.topk)


@dataclass(frozen=True)
class Trace:
    """`ids` int32 [warmup_steps + steps, requests, topk], rows of each request's context. After the
    first `warmup_steps`, a buffer has no free slot."""

    ids: np.ndarray
    warmup_steps: int


def draw_trace(name: str, shape: Shape, rng: np.random.Generator) -> Trace:
    """The trace `name`, one of

    misses_N: N rows of all requests together are missing in each step after the warm-up
    kept_S: the share S of a step's rows stays, such as 0.9; others come from a neighbourhood that
        moves on slowly, so that some of them are still in the buffer
    all_new: all rows of a step are missing
    all_same: every step has the same rows
    one_more: steps take turns through one row more than there are slots
    twice: every row comes twice in a step, and half of them are missing

    Rows are scattered over the context. With _consecutive behind the name, rows become new in the
    order of the context, and the ids of a step ascend.

    FieldError for another name, or if the context has too few rows for the trace.
    """
    base, consecutive = name.removesuffix("_consecutive"), name.endswith("_consecutive")
    ids = _draw(base, shape, _context(shape, consecutive, rng), rng)
    if consecutive:
        ids = np.sort(ids, axis=2)
    return Trace(ids, len(ids) - shape.steps)


def draw_places(
    requests: int, context_rows: int, pool_rows: int, layout: str, rng: np.random.Generator
) -> np.ndarray:
    """Pool row of every row of every context, int32 [requests, context_rows].

    A context has each pool row at most once; contexts may share rows. `layout` is one of

    scattered: any rows
    pages_N: aligned runs of N consecutive rows, as in a paged cache
    consecutive: one run

    FieldError for another layout, or if the pool has too few rows.
    """
    if not 1 <= context_rows <= pool_rows:
        raise FieldError("context_rows", f"1 to {pool_rows}, all rows of the pool", context_rows)
    places = np.empty((requests, context_rows), np.int32)
    for request in range(requests):
        places[request] = _places(layout, context_rows, pool_rows, rng)
    return places


def _draw(base: str, shape: Shape, context: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if base == "all_new":
        return _replaced(shape, context, shape.topk, rng)
    if base == "all_same":
        return _replaced(shape, context, 0, rng)
    if base == "one_more":
        return _cycle(shape, context)
    if base == "twice":
        return _twice(shape, context, rng)
    if found := re.fullmatch(r"misses_(\d+)", base):
        misses, rest = divmod(int(found[1]), shape.requests)
        if rest or misses > shape.topk:
            expected = f"a multiple of {shape.requests} up to {shape.requests * shape.topk}"
            raise FieldError(f"trace {base}", expected, int(found[1]))
        return _replaced(shape, context, misses, rng)
    if found := re.fullmatch(r"kept_([01](?:\.\d+)?)", base):
        share = float(found[1])
        if share > 1:
            raise FieldError(f"trace {base}", "a share from 0 to 1", share)
        return _moving(shape, context, share, rng)
    raise FieldError("trace", _EXPECTED, base)


def _context(shape: Shape, consecutive: bool, rng: np.random.Generator) -> np.ndarray:
    """All rows of each context in the order in which they become new, int32 [requests, rows]."""
    rows = np.tile(np.arange(shape.context_rows, dtype=np.int32), (shape.requests, 1))
    return rows if consecutive else rng.permuted(rows, axis=1)


class _Rows:
    """The rows of the current step, `inside` [requests, topk], and others in a ring. Rows that
    leave go to the end of the ring, so they come back only after all others of it."""

    def __init__(self, inside: np.ndarray, ring: np.ndarray) -> None:
        self.inside = inside.copy()
        self._ring = ring.copy()
        self._head = 0

    def swap(self, target: np.ndarray, columns: np.ndarray) -> None:
        """Swap `columns` [requests, count] of `target` with the rows at the head of the ring."""
        count, length = columns.shape[1], self._ring.shape[1]
        ring = (self._head + np.arange(count)) % length
        _swap(target, columns, self._ring, np.broadcast_to(ring, columns.shape))
        # Rows that leave together are equally old: the lower id is evicted first.
        self._ring[:, ring] = np.sort(self._ring[:, ring], axis=1)
        self._head = (self._head + count) % length

    def replace(self, count: int, rng: np.random.Generator) -> None:
        """Replace `count` rows of the current step, or as many as the ring has."""
        count = min(count, self._ring.shape[1])
        if count:
            self.swap(self.inside, _least(rng.random(self.inside.shape, np.float32), count))


def _replaced(
    shape: Shape, context: np.ndarray, misses: int, rng: np.random.Generator
) -> np.ndarray:
    """`misses` rows of every request are replaced in each step, by rows that are in no buffer."""
    _require_context(shape, shape.slots + misses)
    rows = _Rows(context[:, : shape.topk], context[:, shape.topk :])
    steps = [rows.inside.copy()]
    for replaced in (shape.warmup_steps - 1) * [shape.topk] + shape.steps * [misses]:
        rows.replace(replaced, rng)
        steps.append(rows.inside.copy())
    return np.stack(steps)


def _cycle(shape: Shape, context: np.ndarray) -> np.ndarray:
    """Each step takes the next `topk` of slots + 1 rows, in turn."""
    _require_context(shape, shape.slots + 1)
    first = np.arange(shape.warmup_steps + shape.steps)[:, None] * shape.topk
    turns = (first + np.arange(shape.topk)) % (shape.slots + 1)
    return context[:, turns].swapaxes(0, 1)


def _twice(shape: Shape, context: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Half as many rows as ids, each twice, in any order; half of them are replaced in a step."""
    if shape.topk % 2:
        raise FieldError("topk", "an even number for the trace twice", shape.topk)
    half = replace(shape, topk=shape.topk // 2)
    once = _replaced(half, context, half.topk // 2, rng)
    return rng.permuted(np.concatenate([once, once], axis=2), axis=2)


def _moving(
    shape: Shape, context: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """The share `share` stays; other rows change places with rows of a neighbourhood, of which some
    change places with rows farther away."""
    replaced = round(shape.topk * (1 - share))
    around = max(NEAR_PER_SLOT * shape.slots, 2 * shape.topk)
    moved = max(1, round(shape.topk * MOVES_PER_STEP))
    _require_context(shape, around + moved)
    neighbours = context[:, shape.topk : around].copy()
    rows = _Rows(context[:, : shape.topk], context[:, around:])
    steps = [rows.inside.copy()]
    every = np.broadcast_to(np.arange(shape.topk), rows.inside.shape)
    for step in range(shape.warmup_steps - 1):
        _swap(rows.inside, every, neighbours, every + step * shape.topk)
        steps.append(rows.inside.copy())
    for _ in range(shape.steps):
        leaving = rng.choice(neighbours.shape[1], moved, replace=False)
        rows.swap(neighbours, np.broadcast_to(leaving, (shape.requests, moved)))
        if replaced:
            outside = rng.standard_exponential(neighbours.shape, np.float32)
            outside[neighbours % HOT_ONE_IN == 0] /= HOT_WEIGHT
            inside = _least(rng.random(rows.inside.shape, np.float32), replaced)
            _swap(rows.inside, inside, neighbours, _least(outside, replaced))
        steps.append(rows.inside.copy())
    return np.stack(steps)


def _least(draws: np.ndarray, count: int) -> np.ndarray:
    """Columns of the `count` smallest draws of each row, [rows, count]."""
    return np.argpartition(draws, count - 1, axis=1)[:, :count]


def _swap(
    first: np.ndarray, columns: np.ndarray, second: np.ndarray, other_columns: np.ndarray
) -> None:
    """Swap the entries at `columns` of `first` and at `other_columns` of `second`, row by row."""
    kept = np.take_along_axis(first, columns, axis=1)
    np.put_along_axis(first, columns, np.take_along_axis(second, other_columns, axis=1), axis=1)
    np.put_along_axis(second, other_columns, kept, axis=1)


def _require_context(shape: Shape, rows: int) -> None:
    if shape.context_rows < rows:
        raise FieldError("context_rows", f"at least {rows} for this trace", shape.context_rows)


def _places(layout: str, context_rows: int, pool_rows: int, rng: np.random.Generator) -> np.ndarray:
    if layout == "consecutive":
        return int(rng.integers(pool_rows - context_rows + 1)) + np.arange(context_rows)
    page = re.fullmatch(r"pages_([1-9]\d*)", layout)
    if page is None and layout != "scattered":
        raise FieldError("layout", "scattered, pages_N or consecutive", layout)
    run = int(page[1]) if page else 1
    pages = -(-context_rows // run)
    if pages > pool_rows // run:
        raise FieldError("pool_rows", f"room for {pages} pages of {run} rows", pool_rows)
    starts = rng.choice(pool_rows // run, pages, replace=False) * run
    return (starts[:, None] + np.arange(run)).ravel()[:context_rows]
