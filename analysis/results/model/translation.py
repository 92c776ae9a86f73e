"""The cost of address translation: the number of page walks that a launch needs, and their time.

A GPU holds the translations of a limited number of pages. A read elsewhere waits for a page walk.
The chip's walker does one walk after the other. A walk reads one line of page-table entries, by way
of the level above, some of whose entries are also held. The line is in the L2 unless this is the
first walk to it in a launch, or moved rows have evicted it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from analysis.results.model.traffic import LINE_BYTES
from analysis.study.access import Access, Floats

if TYPE_CHECKING:
    from analysis.results.model.terms import Parameters

ENTRY_BYTES: Final = LINE_BYTES // 8 * 4096
"""Bytes that one cached translation covers: a line of 8-byte page-table entries that map 4 KiB each
(Linux open-gpu-doc, "Pascal MMU format"). The study `translation` measures it."""
REGION_BYTES: Final = 2 * 2**20
"""Bytes that one entry of the level above maps (same source)."""
REGIONS_A_LINE: Final = LINE_BYTES // 16
"""Entries of that level have 16 bytes (same source)."""
LAUNCHES_BEFORE: Final = 2
"""How many launches' translations are held in the middle of a timed one: that of NVBench's warm-up,
on average half a sample before, and the first half of this one."""


class Walks(NamedTuple):
    """The demand of a launch on address translation.

    `entries`: held translations that would cover the pool. `drawn`: how many of them launches come
    to at all. `touches`: how often a launch goes on to another one. `is_ascending`: in the order of
    addresses. `displacing`: bytes of moved rows that stay in the L2, for lack of streaming hints.
    """

    entries: float = 0.0
    drawn: float = 0.0
    touches: float = 0.0
    is_ascending: float = 0.0
    displacing: float = 0.0


def walks_of(access: Access) -> Walks:
    """The walks that `access` may need; none where it is not known how large the pool is."""
    if not access.pool_bytes:
        return Walks()
    drawn = entries = access.pool_bytes / ENTRY_BYTES
    touches = access.rows * _touches_per_row(access)
    if access.layout == "repeated":
        drawn *= -math.expm1(-touches / entries)
    displacing = 0.0 if access.streaming else float(access.payload_bytes)
    return Walks(entries, drawn, touches, float(access.is_ascending), displacing)


def _touches_per_row(access: Access) -> float:
    """Number of entries that a row needs and the previous row did not."""
    stride = access.stride_bytes
    if access.layout == "contiguous":
        entries = access.stretch_rows * stride / ENTRY_BYTES
        return entries * (1 - math.exp(-access.request_rows / entries)) / access.request_rows
    run = access.run_rows
    length = (run - 1) * stride + access.row_bytes
    return (1 + (length - 16) / ENTRY_BYTES) / run


def walk_seconds(
    known: Parameters,
    entries: Floats,
    drawn: Floats,
    touches: Floats,
    is_ascending: Floats,
    displacing: Floats,
) -> Floats:
    """Seconds [cases] of the walks of launches [cases], one after the other; 0 without a pool.
    Ascending order never costs more than none."""
    has_pool = entries > 0
    if not has_pool.any():
        return np.zeros(len(entries))
    pool, drawn = (np.where(has_pool, count, 1.0) for count in (entries, drawn))
    random = _in_random_order(known, pool, drawn, touches, displacing)
    ordered = np.minimum(random, _in_ascending_order(known, pool, touches))
    return np.where(has_pool, np.where(is_ascending > 0, ordered, random), 0.0)


def _in_random_order(
    known: Parameters, pool: Floats, drawn: Floats, touches: Floats, displacing: Floats
) -> Floats:
    """A touch finds its entry held with the share of entries that are held; so with regions. The L2
    is empty before a launch, so the first walk to a line of either table finds it in device memory.
    Later, a line is still in the L2 if fewer than `row_cache` bytes of rows, whose number is
    exponentially distributed, came between two walks to it."""
    met = _visited(drawn, LAUNCHES_BEFORE * touches)
    walks = touches * (1 - np.minimum(known.held_entries, met) / drawn)
    some = np.maximum(walks, 1e-9)
    regions = pool * ENTRY_BYTES / REGION_BYTES
    elsewhere = np.clip(1 - known.held_regions / regions, 0, None)
    first = _visited(pool, some) / some
    first_above = _visited(regions / REGIONS_A_LINE, some) / some
    kept = -np.expm1(-known.row_cache * some / (pool * np.maximum(displacing, 1)))
    waits = known.table_miss * (1 - (1 - first) * kept + first_above)
    seconds: Floats = walks * (known.walk + known.region_walk * elsewhere + waits)
    return seconds


def _in_ascending_order(known: Parameters, pool: Floats, touches: Floats) -> Floats:
    """Each entry is walked to once, as it is replaced before the next launch. The rows in flight
    lie in few regions, and where these come to the next one, all wait for its entry."""
    walks = np.where(pool > known.held_entries, _visited(pool, touches), 0.0)
    regions = _visited(pool * ENTRY_BYTES / REGION_BYTES, walks)
    seconds: Floats = walks * known.walk + regions * known.region_wait
    return seconds


def _visited(places: Floats, visits: Floats) -> Floats:
    """Expected number of distinct `places` that `visits` to random ones hit."""
    met: Floats = places * -np.expm1(-visits / places)
    return met
