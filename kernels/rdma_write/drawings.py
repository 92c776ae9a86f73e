"""Path of a write over shared memory, from its post to its completion."""

from __future__ import annotations

from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Canvas, Drawing

ACTORS: Final = ("server's thread", "provider", "client")
MESSAGES: Final = (
    (0, 1, "post: describe"),
    (1, 2, "queue, locked"),
    (2, 2, "move the page"),
    (1, 0, "poll: completed"),
    (0, 0, "count"),
)
"""Messages in order: indices of sender and receiver, and the text."""
ROW_PX: Final = 30


def drawings(facts: StudyFacts) -> dict[str, Drawing]:
    """`path`: the path of each write."""
    steps = ", then ".join(
        f"{ACTORS[one]} to {ACTORS[other]}: {what}" if one != other else f"{ACTORS[one]}: {what}"
        for one, other, what in MESSAGES
    )
    return {"path": Drawing("The path of one write", f"In order: {steps}.", _draw)}


def _draw(canvas: Canvas) -> None:
    box = 100.0
    middles = [box / 2, canvas.width / 2, canvas.width - box / 2]
    bottom = 34.0 + ROW_PX * len(MESSAGES)
    for middle, actor in zip(middles, ACTORS, strict=True):
        canvas.node(middle - box / 2, 2, box, 22, actor)
        canvas.line(middle, 24, middle, bottom, "dashed")
    for index, (one, other, what) in enumerate(MESSAGES):
        y = 50.0 + ROW_PX * index
        x = middles[one]
        if one == other:
            canvas.box(x - 4, y - 14, 8, 18, "second" if one else "first")
            side = -1 if other == len(ACTORS) - 1 else 1
            canvas.words(x + 9 * side, y, what, anchor="start" if side > 0 else "end")
        else:
            canvas.arrow(x, y, middles[other], y, "second" if one else "first")
            canvas.words((x + middles[other]) / 2, y - 5, what, anchor="middle")
