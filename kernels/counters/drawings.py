"""Placement of each variant's counters on cache lines, and the cores that write them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Canvas, Drawing
from analysis.api.model import HOST_LINE_BYTES

COUNTER_BYTES: Final = ctypes.sizeof(ctypes.c_uint64)
CORES: Final = 8
"""Number of cores drawn: as many as counters fit on a line."""


@dataclass(frozen=True)
class Layout:
    """Counters of one variant; `stride_bytes` is 0 for a counter that all cores share.

    `in_register`: the core counts in a register and writes the line only now and then.
    """

    stride_bytes: int
    caption: str
    in_register: bool = False


LAYOUTS: Final = {
    "shared_atomic": Layout(0, "one counter: each increment needs its line"),
    "sharded_array": Layout(COUNTER_BYTES, "one counter per core, on one line: it still moves"),
    "sharded_padded": Layout(HOST_LINE_BYTES, "one line per core: it stays there"),
    "thread_local_published": Layout(
        HOST_LINE_BYTES, "one register per core, written to its line now and then", in_register=True
    ),
}


def drawings(facts: StudyFacts) -> dict[str, Drawing]:
    """`lines`: counters on cache lines, and the cores that write them."""
    description = " ".join(f"{name}: {layout.caption}." for name, layout in LAYOUTS.items())
    title = f"Counters of {CORES} cores on cache lines of {HOST_LINE_BYTES} bytes"
    return {"lines": Drawing(title, description, _draw)}


def _draw(canvas: Canvas) -> None:
    y = canvas.legend(
        0,
        {
            "first": f"a counter, {COUNTER_BYTES} B",
            "pale": "padding",
            "third": "a core",
            "second": "a core that waits for a line",
        },
    )
    for name, layout in LAYOUTS.items():
        canvas.words(0, y + 12, name, "name")
        canvas.words(0, y + 26, layout.caption, "quiet")
        _draw_layout(canvas, layout, y + 34)
        y += 104


def _draw_layout(canvas: Canvas, layout: Layout, y: float) -> None:
    """Draw the cores in a row, and below them the lines that they write."""
    lines = max(1, CORES * layout.stride_bytes // HOST_LINE_BYTES)
    pitch = canvas.width / CORES
    is_shared = lines == 1
    width = canvas.width / 2 if is_shared else pitch - 6
    left = (canvas.width - width) / 2 if is_shared else 3.0
    scale = width / HOST_LINE_BYTES
    counter = max(COUNTER_BYTES * scale, 3.0)
    for line in range(lines):
        canvas.box(left + line * pitch, y + 38, width, 14, "pale")
    for core in range(CORES):
        middle = (core + 0.5) * pitch
        at = core * layout.stride_bytes
        x = left + at // HOST_LINE_BYTES * pitch + at % HOST_LINE_BYTES * scale
        canvas.line(middle, y + 16, x + counter / 2, y + 38, "dashed" if layout.in_register else "")
        canvas.box(middle - 11, y, 22, 16, "second" if is_shared else "third")
        canvas.words(middle, y + 12, str(core), "inside", "middle")
        if layout.in_register:
            canvas.box(middle + 13, y + 4, 5, 8, "first")
        if core == 0 or layout.stride_bytes:
            canvas.box(x, y + 38, counter, 14, "first")
    for line in range(lines):
        canvas.box(left + line * pitch, y + 38, width, 14, "outline")
