"""The memory that one translation covers, and the reads that share it."""

from __future__ import annotations

from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Canvas, Drawing
from analysis.api.model import ENTRY_BYTES, LINE_BYTES

TABLE_ENTRY_BYTES: Final = 8
"""An entry of the page tables; see ENTRY_BYTES."""
ENTRIES: Final = LINE_BYTES // TABLE_ENTRY_BYTES
PAGE_BYTES: Final = ENTRY_BYTES // ENTRIES
COVERED: Final = 4
"""Number of translations drawn side by side."""
DISTANCES_KIB: Final = (4, 16, 64, 128)
"""Distances between addresses, one row of the drawing each."""


def drawings(facts: StudyFacts) -> dict[str, Drawing]:
    """`covers`: a line of the page tables, the pages it maps, and addresses over them."""
    page, entry = PAGE_BYTES >> 10, ENTRY_BYTES >> 10
    text = " ".join(f"{distance} KiB apart: {_words(distance)}." for distance in DISTANCES_KIB)
    return {
        "covers": Drawing(
            f"One line of the page tables maps {ENTRIES} pages of {page} KiB, {entry} KiB together",
            f"Addresses over {COVERED} translations side by side. {text}",
            _draw,
        )
    }


def addresses(distance_kib: int) -> range:
    """Byte addresses at this distance, over the memory drawn."""
    return range(0, COVERED * ENTRY_BYTES, distance_kib << 10)


def _words(distance_kib: int) -> str:
    read = addresses(distance_kib)
    needed = {address // ENTRY_BYTES for address in read}
    return f"{len(read)} addresses, {len(needed)} translations"


def _draw(canvas: Canvas) -> None:
    width = canvas.width / COVERED
    canvas.words(0, 10, f"A line of the page tables: {ENTRIES} entries of {TABLE_ENTRY_BYTES} B")
    entry = (canvas.width / 2) / ENTRIES
    for index in range(ENTRIES):
        canvas.box(index * entry, 16, entry, 16, "second")
    for end, below in ((0.0, 0.0), (ENTRIES * entry, width)):
        canvas.line(end, 32, below, 66, "dashed")
    pages = f"maps {ENTRIES} pages of {PAGE_BYTES >> 10} KiB"
    canvas.words(ENTRIES * entry + 8, 28, pages, "quiet")
    y = 66.0
    for translation in range(COVERED):
        x = translation * width
        for page in range(ENTRIES):
            canvas.box(x + page * width / ENTRIES, y, width / ENTRIES, 14, "pale")
        canvas.box(x, y, width, 14, "outline")
        canvas.words(x + 3, y + 27, f"{ENTRY_BYTES >> 10} KiB", "quiet")
    y += 42
    for distance in DISTANCES_KIB:
        canvas.words(0, y + 10, f"{distance} KiB apart", "name")
        canvas.words(canvas.width, y + 10, _words(distance), anchor="end")
        needed = {address // ENTRY_BYTES for address in addresses(distance)}
        for translation in range(COVERED):
            kind = "second" if translation in needed else "pale"
            canvas.box(translation * width, y + 30, width, 7, kind)
        for address in addresses(distance):
            canvas.box(address / ENTRY_BYTES * width, y + 16, 3, 12, "first bare")
        y += 50
