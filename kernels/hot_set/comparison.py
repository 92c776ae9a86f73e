"""Comparison of a buffer on the device with the reference, after a step of one request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .policies import Clock
from .reference import FREE, HotSet, Step


@dataclass(frozen=True)
class Contents:
    """State that a variant leaves, of one request.

    slots: slot of every id of the last step, in their order, [ids]
    rows: row in each slot, or FREE, [slots]
    last_used: last step that used the row of each slot, counted from 0, [slots]; None if the
        variant keeps `order` instead
    order: occupied slots in the order of eviction, [rows held]
    buffer: bytes of the slots, uint8 [slots, row_bytes]; None if they are not compared
    fetched: rows that the last step has fetched, in any order; None if the variant does not say
    """

    slots: np.ndarray
    rows: np.ndarray
    last_used: np.ndarray | None = None
    order: np.ndarray | None = None
    buffer: np.ndarray | None = None
    fetched: np.ndarray | None = None


@dataclass(frozen=True)
class Source:
    """Where rows come from: pool row of each row of the context, `places`; the pool, uint8
    [pool_rows, row_bytes]; and the byte of slots that were never used, None if it does not matter.
    """

    places: np.ndarray
    pool: np.ndarray
    poison: int | None = None


def difference(
    reference: HotSet | Clock, step: Step, ids: np.ndarray, got: Contents, source: Source
) -> str | None:
    """The first difference between `got` and the reference after `step`, which took `ids`; None if
    there is none. A reference by CLOCK has neither last uses nor an order to compare.

    The numbers of slots may differ: a variant may put a row into any free or evicted slot. The rows
    held, their last use or order of eviction, the slots handed out and all bytes must agree.
    """
    if got.rows.shape != reference.rows.shape:
        return f"slots: expected {len(reference.rows)}, got {list(got.rows.shape)}"
    held = (each[each != FREE] for each in (reference.rows, got.rows))
    fetched = step.missed_rows if got.fetched is None else got.fetched
    return (
        _wrong_rows("slot", *held)
        or _wrong_slots("id", ids, got.slots, got.rows)
        or _wrong_last_use(reference, got)
        or _wrong_order(reference, got)
        or _wrong_rows("fetch", step.missed_rows, fetched)
        or _wrong_bytes(got, source)
    )


def _wrong_rows(what: str, expected: np.ndarray, got: np.ndarray) -> str | None:
    """A row that has several of `what`, one that should have none, or one that lacks it. In
    `expected`, every row is once."""
    if np.array_equal(np.sort(expected), np.sort(got)):
        return None
    rows, counts = np.unique(got, return_counts=True)
    for at in np.flatnonzero(counts > 1)[:1]:
        return f"row {rows[at]}: expected one {what}, got {counts[at]}"
    for row in np.setdiff1d(rows, expected)[:1]:
        return f"row {row}: expected no {what}, got one"
    for row in np.setdiff1d(expected, rows)[:1]:
        return f"row {row}: expected one {what}, got none"
    return None


def _wrong_slots(
    what: str, expected: np.ndarray, slots: np.ndarray, rows: np.ndarray
) -> str | None:
    """The first of `slots` that does not hold its expected row."""
    if slots.shape != expected.shape:
        return f"{what}: expected {len(expected)} slots, got {list(slots.shape)}"
    is_slot = (slots >= 0) & (slots < len(rows))
    found = np.where(is_slot, rows[np.where(is_slot, slots, 0)], FREE)
    for at in np.flatnonzero(found != expected)[:1]:
        holds = "no row" if found[at] == FREE else f"row {found[at]}"
        return (
            f"{what} {at}: expected the slot of row {expected[at]}, got slot {slots[at]}, {holds}"
        )
    return None


def _wrong_last_use(reference: HotSet | Clock, got: Contents) -> str | None:
    if got.last_used is None or not isinstance(reference, HotSet):
        return None
    used = np.full(int(reference.rows.max()) + 1, FREE, np.int64)
    held = reference.rows != FREE
    used[reference.rows[held]] = reference.last_used[held]
    slots = np.flatnonzero(got.rows != FREE)
    for slot in slots[got.last_used[slots] != used[got.rows[slots]]][:1]:
        row = got.rows[slot]
        return f"row {row}: expected last use in step {used[row]}, got {got.last_used[slot]}"
    return None


def _wrong_order(reference: HotSet | Clock, got: Contents) -> str | None:
    if got.order is None or not isinstance(reference, HotSet):
        return None
    expected = reference.rows[reference.order]
    return _wrong_slots("order of eviction", expected, got.order, got.rows)


def _wrong_bytes(got: Contents, source: Source) -> str | None:
    """The first byte that is not the row's or, in a free slot, not poison."""
    if got.buffer is None:
        return None
    held = np.flatnonzero(got.rows != FREE)
    rows = got.rows[held]
    expected = source.pool.take(source.places[rows], axis=0)
    found = got.buffer if len(held) == len(got.rows) else got.buffer[held]
    word = np.uint8 if expected.shape[1] % 8 else np.uint64
    if not np.array_equal(found.view(word), expected.view(word)):
        at, byte = np.argwhere(found != expected)[0]
        values = f"expected {expected[at, byte]}, got {found[at, byte]}"
        return f"slot {held[at]}, row {rows[at]}, byte {byte}: {values}"
    free = np.flatnonzero(got.rows == FREE)
    if source.poison is not None and (wrong := got.buffer[free] != source.poison).any():
        at, byte = np.argwhere(wrong)[0]
        values = f"expected {source.poison}, got {got.buffer[free[at], byte]}"
        return f"slot {free[at]}, which is free, byte {byte}: {values}"
    return None
