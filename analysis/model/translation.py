"""What address translation costs: how many walks of the page tables a launch needs, and their time.

A GPU holds the translations of a limited number of pages. A read elsewhere waits for a walk, and
the walker of the chip does one after the other, so that walks a second are a limit beside the
link's. A walk reads one line of page-table entries. That line is in the L2, unless other lines,
among them the rows that are moved, have displaced it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from analysis.errors import FieldError
from analysis.model.access import Access, Floats
from analysis.model.traffic import LINE_BYTES

ENTRY_BYTES: Final = LINE_BYTES // 8 * 4096
"""What one held translation covers: a line of page-table entries of 8 bytes, each of which maps
4 KiB (Linux open-gpu-doc, "Pascal MMU format", 4 KiB PTEs). The study `translation` measures it."""
REGION_BYTES: Final = 2 * 2**20
"""What one entry of the level above maps (same source)."""
REGIONS_A_LINE: Final = LINE_BYTES // 16
"""Entries of that level have 16 bytes (same source)."""


@dataclass(frozen=True)
class Walks:
    """What a launch asks of translation.

    `entries`: held translations that would cover the pool. `touches`: how often the launch goes on
    to another one of them. `is_ascending`: in the order of addresses, so each once. `displacing`
    and `streamed`: bytes of rows moved without and with the hint that they will not be used again.
    """

    entries: float = 0.0
    touches: float = 0.0
    is_ascending: bool = False
    displacing: float = 0.0
    streamed: float = 0.0


def walks_of(access: Access) -> Walks:
    """The walks that `access` may need; none where study.yaml does not say how large the pool is.

    FieldError for a layout that is not known.
    """
    if not access.pool_bytes:
        return Walks()
    entries = access.pool_bytes / ENTRY_BYTES
    touches = access.rows * _touches_per_row(access)
    if access.layout == "repeated":
        entries = min(entries, entries * (1 - math.exp(-touches / entries)))
    moved = float(access.payload_bytes)
    return Walks(
        entries,
        touches,
        access.order == "ascending",
        displacing=0.0 if access.streaming else moved,
        streamed=moved if access.streaming else 0.0,
    )


def _touches_per_row(access: Access) -> float:
    """How many entries a row needs that the row before it did not: a run of consecutive rows needs
    those that it lies in, at a random start."""
    stride = access.stride_bytes
    if access.layout == "contiguous":
        entries = access.stretch_rows * stride / ENTRY_BYTES
        return entries * (1 - math.exp(-access.request_rows / entries)) / access.request_rows
    run = 1
    if access.layout.startswith("pages_"):
        run = int(access.layout.removeprefix("pages_"))
    elif access.layout not in ("scattered", "distinct", "repeated"):
        expected = "scattered, distinct, repeated, contiguous or pages_<rows>"
        raise FieldError("layout", expected, access.layout)
    length = (run - 1) * stride + access.row_bytes
    return (1 + (length - 16) / ENTRY_BYTES) / run


@dataclass(frozen=True)
class Walker:
    """The parameters of a machine's translation; see analysis.model.terms.Parameters."""

    held_entries: float
    walk: float
    region_walk: float
    table_miss: float
    table_cache: float
    displacement: float
    streaming_displacement: float


def walk_seconds(
    walker: Walker,
    entries: Floats,
    touches: Floats,
    is_ascending: Floats,
    displacing: Floats,
    streamed: Floats,
) -> Floats:
    """Seconds [cases] of the walks of launches [cases], one after the other; 0 without a pool.

    With random replacement, a touch finds its entry held with the share of the entries that are.
    In ascending order each entry is walked to once. The L2 is empty before a launch, as it is where
    samples are taken, so that the first walk to a line of the page tables finds it in device
    memory, and so with the lines of the level above. Later, a line is still in the L2 if fewer
    bytes than this holds came between two walks to it. How many came is exponentially
    distributed where walks are independent. In ascending order they come at more regular distances,
    and a Rayleigh distribution stands for these.
    """
    has_pool = entries > 0
    pool = np.where(has_pool, entries, 1.0)
    visited = np.where(is_ascending > 0, pool * -np.expm1(-touches / pool), touches)
    walks = visited * np.clip(1 - walker.held_entries / pool, 0, None)
    some = np.maximum(walks, 1e-9)
    regions = pool * ENTRY_BYTES / REGION_BYTES
    entered = np.where(is_ascending > 0, regions * -np.expm1(-some / regions) / some, 1.0)
    rows = walker.displacement * displacing + walker.streaming_displacement * streamed
    between = pool * (LINE_BYTES + rows / some)
    held = walker.table_cache / between
    displaced = np.exp(-np.where(is_ascending > 0, held**2, held))
    missed = 1 - (1 - _first(some, pool)) * (1 - displaced)
    missed_above = _first(some, regions / REGIONS_A_LINE)
    waits = walker.table_miss * (missed + missed_above)
    seconds = walks * (walker.walk + walker.region_walk * entered + waits)
    return np.where(has_pool, seconds, 0.0)


def _first(walks: Floats, lines: Floats) -> Floats:
    """The share of `walks` to random ones of so many `lines` that are the first to theirs."""
    share: Floats = lines * -np.expm1(-walks / lines) / walks
    return share
