"""From the order in which fragments arrive to the order in which they belong."""

from __future__ import annotations

from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Canvas, Drawing

DESCRIPTOR_BYTES: Final = 16
ARRIVAL: Final = (3, 0, 5, 1, 6, 2, 4)
"""The fragments of a chunk in the order in which they arrive, by their place at the destination."""
LENGTHS: Final = (4, 4, 4, 4, 4, 4, 2)
"""Lengths of the fragments at the destination, in KiB; the last one holds the rest."""


def drawings(facts: StudyFacts) -> dict[str, Drawing]:
    """`bounce`: descriptors, the bounce buffer and the destination of one chunk."""
    order = ", ".join(str(fragment) for fragment in ARRIVAL)
    description = (
        f"A row of descriptors, one for each of {len(ARRIVAL)} fragments, above the bounce buffer,"
        f" where the fragments lie in the order of arrival: {order}. Arrows lead from each to its"
        " place in the destination, where they are in order."
    )
    return {
        "bounce": Drawing("A chunk: descriptors, bounce buffer, destination", description, _draw)
    }


def _draw(canvas: Canvas) -> None:
    scale = canvas.width / sum(LENGTHS)
    places = {}
    x = 0.0
    for fragment, length in enumerate(LENGTHS):
        places[fragment] = x
        x += length * scale
    canvas.words(0, 11, f"descriptors in host memory, {DESCRIPTOR_BYTES} B each")
    canvas.words(0, 74, "bounce buffer in GPU memory, as packets arrived")
    x = 0.0
    for fragment in ARRIVAL:
        width = LENGTHS[fragment] * scale
        middle = x + width / 2
        canvas.box(middle - 10, 18, 20, 12, "second")
        canvas.line(middle, 30, middle, 58, "dashed")
        canvas.box(x, 80, width, 20, "first")
        canvas.words(middle, 94, str(fragment), "inside", "middle")
        canvas.arrow(middle, 102, places[fragment] + width / 2, 146, "third")
        canvas.box(places[fragment], 148, width, 20, "first")
        canvas.words(places[fragment] + width / 2, 162, str(fragment), "inside", "middle")
        x += width
    canvas.words(0, 184, "destination; a team of threads copies a fragment")
