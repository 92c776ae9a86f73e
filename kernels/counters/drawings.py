"""Where each variant's counters lie: on which cache lines, and which cores write them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Canvas, Drawing
from analysis.api.model import HOST_LINE_BYTES

COUNTER_BYTES: Final = ctypes.sizeof(ctypes.c_uint64)
CORES: Final = 8
"""Cores that are drawn: as many as counters fit on a line."""


@dataclass(frozen=True)
class Layout:
    """Counters of one variant: bytes from one core's to the next one's, 0 where all have the same.

    `held` is whether the core counts in a register and writes the line only now and then.
    """

    stride: int
    told: str
    held: bool = False


LAYOUTS: Final = {
    "shared_atomic": Layout(0, "one counter: each increment needs its line"),
    "sharded_array": Layout(COUNTER_BYTES, "a counter each, on one line: it moves all the same"),
    "sharded_padded": Layout(HOST_LINE_BYTES, "a line each: it stays with its core"),
    "thread_local_published": Layout(
        HOST_LINE_BYTES, "a register each, written to the line now and then", held=True
    ),
}


def drawings(facts: StudyFacts) -> dict[str, Drawing]:
    """`lines`: counters on cache lines, and the cores that write them."""
    told = " ".join(f"{name}: {layout.told}." for name, layout in LAYOUTS.items())
    title = f"Counters of {CORES} cores on cache lines of {HOST_LINE_BYTES} bytes"
    return {"lines": Drawing(title, told, _draw)}


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
        canvas.words(0, y + 26, layout.told, "quiet")
        _draw_layout(canvas, layout, y + 34)
        y += 104


def _draw_layout(canvas: Canvas, layout: Layout, y: float) -> None:
    """Cores in a row, and below them the lines they write, as wide as their number allows."""
    lines = max(1, CORES * layout.stride // HOST_LINE_BYTES)
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
        at = core * layout.stride
        x = left + at // HOST_LINE_BYTES * pitch + at % HOST_LINE_BYTES * scale
        canvas.line(middle, y + 16, x + counter / 2, y + 38, "dashed" if layout.held else "")
        canvas.box(middle - 11, y, 22, 16, "second" if is_shared else "third")
        canvas.words(middle, y + 12, str(core), "inside", "middle")
        if layout.held:
            canvas.box(middle + 13, y + 4, 5, 8, "first")
        if core == 0 or layout.stride:
            canvas.box(x, y + 38, counter, 14, "first")
    for line in range(lines):
        canvas.box(left + line * pitch, y + 38, width, 14, "outline")
