"""Drawings: rows of a launch in the pool, by layout, with the translations they need; and the rates
that follow from them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import numpy as np

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Canvas, Drawing
from analysis.api.model import ENTRY_BYTES

from .pool_sizes import pool_sizes

ENTRIES: Final = 32
"""Translations that cover the drawn pool. A pool of gigabytes needs thousands."""
HELD: Final = 6
"""Translations that the drawn GPU holds: those used last."""
ROWS: Final = 64
RUN: Final = 16
"""Consecutive rows in `pages`."""
STRETCH: Final = 4
"""Translations that cover the stretch of `contiguous`."""


def drawings(facts: StudyFacts) -> dict[str, Drawing | None]:
    """`layouts`: the order in which rows of the pool are read, by layout. `pool_sizes`: measured
    rates over the size of the pool."""
    slot = facts.study.constants["slot_bytes"]
    launches = draw_launches(ENTRIES * ENTRY_BYTES // slot, slot)
    description = " ".join(f"{name}: {_words(entries)}." for name, entries in launches.items())
    title = f"{ROWS} rows of a pool that needs {ENTRIES} translations, of which {HELD} are held"
    layouts = Drawing(title, description, lambda canvas: _draw(canvas, launches))
    return {"layouts": layouts, "pool_sizes": pool_sizes(facts)}


def draw_launches(pool_rows: int, slot_bytes: int) -> dict[str, list[float]]:
    """Positions of a launch's rows in the order of reading, in translations from the start of the
    pool."""
    random = np.random.default_rng(7)
    scattered = random.integers(0, pool_rows, ROWS)
    runs = random.integers(0, pool_rows // RUN, ROWS // RUN) * RUN
    stretch = STRETCH * ENTRY_BYTES // slot_bytes
    first = (ENTRIES // 2) * ENTRY_BYTES // slot_bytes
    rows = {
        "scattered": scattered,
        "scattered, sorted": np.sort(scattered),
        f"pages of {RUN} rows": (runs[:, None] + np.arange(RUN)).ravel(),
        "contiguous": first + random.integers(0, stretch, ROWS),
    }
    return {name: (drawn * slot_bytes / ENTRY_BYTES).tolist() for name, drawn in rows.items()}


def walks(places: Sequence[float]) -> int:
    """Number of reads whose translation is not among the last HELD ones."""
    held: OrderedDict[int, None] = OrderedDict()
    missed = 0
    for place in places:
        entry = int(place)
        missed += entry not in held
        held[entry] = None
        held.move_to_end(entry)
        if len(held) > HELD:
            held.popitem(last=False)
    return missed


def _words(places: Sequence[float]) -> str:
    return f"{len({int(place) for place in places})} translations, {walks(places)} walks"


def _draw(canvas: Canvas, launches: dict[str, list[float]]) -> None:
    width = canvas.width / ENTRIES
    y = canvas.legend(0, {"first": "a row, the first one read on top", "second": "translation"})
    for name, places in launches.items():
        canvas.words(0, y + 10, name, "name")
        canvas.words(canvas.width, y + 10, _words(places), anchor="end")
        for index, place in enumerate(places):
            canvas.box(min(place * width, canvas.width - 4), y + 17 + index, 4, 2, "first bare")
        needed = {int(place) for place in places}
        for entry in range(ENTRIES):
            kind = "second" if entry in needed else "pale"
            canvas.box(entry * width, y + 20 + ROWS, width, 9, kind)
        y += ROWS + 44
