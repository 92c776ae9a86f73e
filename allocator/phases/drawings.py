"""Where each allocator's blocks lie after the same few requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Canvas, Drawing
from analysis.api.quantities import listing

from .tables import SHORT

BUCKETED: Final = "p2_size_buckets"
"""Its blocks are larger than their requests, and the rest cannot be used."""
MAX_DRAWN_BYTES: Final = 2**28
"""A larger heap is cut off, to keep the others readable."""


def drawings(facts: StudyFacts) -> dict[str, Drawing | None]:
    """`blocks`: segments and blocks by allocator; None where the modules were not built."""
    table = facts.derived("after_short")
    if table is None:
        return {"blocks": None}
    heaps = {str(name): heap for name, heap in table.groupby("variant", sort=False)}
    title = f"The heap after: {_requests(SHORT)}"
    alternative = " ".join(f"{name}: {_words(heap)}." for name, heap in heaps.items())
    return {"blocks": Drawing(title, alternative, lambda canvas: _draw(canvas, heaps))}


def _requests(tape: Sequence[tuple[str, int]]) -> str:
    """Requests in words."""
    return ", ".join(f"{what} {mib} MiB" if mib else f"free {what}" for what, mib in tape)


Extent = tuple[str, int, int]
"""`segment` or an allocation's name, and where it begins and ends, in B."""


def _extents(heap: pd.DataFrame) -> tuple[list[Extent], list[Extent]]:
    """Segments, and live allocations."""
    columns = (heap[name].tolist() for name in ("what", "low", "high"))
    extents = list(zip(*columns, strict=True))
    segments = [extent for extent in extents if extent[0] == "segment"]
    return segments, [extent for extent in extents if extent[0] != "segment"]


def _words(heap: pd.DataFrame) -> str:
    segments, _ = _extents(heap)
    calls = int(heap["driver_calls"].iloc[0])
    sizes = listing([str((high - low) >> 20) for _, low, high in segments])
    return f"{calls} driver call{'s' * (calls != 1)}, reserved {sizes} MiB"


def _draw(canvas: Canvas, heaps: dict[str, pd.DataFrame]) -> None:
    drawn = [heap["high"].max() for heap in heaps.values() if heap["high"].max() < MAX_DRAWN_BYTES]
    scale = (canvas.width - 2) / max(drawn)
    y = 10.0
    for part in (SHORT[:3], SHORT[3:]):
        canvas.words(0, y, _requests(part), "quiet")
        y += 15
    entries = {"first": "in use", "second": "lost to rounding", "pale": "free, kept for later"}
    y = canvas.legend(y - 4, {**entries, "outline": "segment"})
    for name, heap in heaps.items():
        canvas.words(0, y + 10, name, "name")
        canvas.words(0, y + 24, _words(heap), "quiet")
        _draw_heap(canvas, heap, y + 30, scale, name == BUCKETED)
        y += 64


def _draw_heap(
    canvas: Canvas, heap: pd.DataFrame, y: float, scale: float, is_bucketed: bool
) -> None:
    """Segments from the left; one that does not fit is cut off at the edge."""
    segments, live = _extents(heap)
    for _, low, high in segments:
        inside = [block for block in live if low <= block[1] < high]
        rest = "second" if is_bucketed and inside else "pale"
        left, right = low * scale, min(high * scale, canvas.width - 1)
        canvas.box(left, y, right - left, 20, f"{rest} bare")
        for what, begin, end in inside:
            canvas.box(begin * scale, y, (end - begin) * scale, 20, "first")
            canvas.words((begin + end) / 2 * scale, y + 14, what, "inside", "middle")
        canvas.box(left, y, right - left, 20, "outline")
        if high * scale > canvas.width:
            canvas.words(right - 16, y + 13, "...", "quiet")
