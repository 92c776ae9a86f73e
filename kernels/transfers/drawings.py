"""Paths of pieces from host memory to the device: the movers, and the memory on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Canvas, Drawing

CPU, ENGINE, KERNEL, PAGES = "second", "first", "third", "fourth"
MOVERS: Final = {
    CPU: "the CPU",
    ENGINE: "the copy engine",
    KERNEL: "SMs",
    PAGES: "the driver, by pages",
}
"""Movers of the bytes of a hop, by colour."""


@dataclass(frozen=True)
class Way:
    """Memories from the host to the device, and the mover from each to the next."""

    name: str
    memories: tuple[str, ...]
    movers: tuple[str, ...]
    note: str


WAYS: Final = (
    Way("pageable", ("pageable", "driver's"), (CPU, ENGINE), "an extra copy by the driver"),
    Way("pinned, registered", ("pinned",), (ENGINE,), "the call only passes addresses"),
    Way("packed", ("pieces", "staging"), (CPU, ENGINE), "the CPU packs, one copy moves all"),
    Way("gather", ("pinned",), (KERNEL,), "a kernel reads the pieces in place"),
    Way("managed", ("managed",), (PAGES,), "a page migrates at its first access"),
)


def drawings(facts: StudyFacts) -> dict[str, Drawing]:
    """`ways`: hops by kind of memory and way of moving."""
    description = " ".join(
        f"{way.name}: {', then '.join(MOVERS[mover] for mover in way.movers)}; {way.note}."
        for way in WAYS
    )
    return {"ways": Drawing("Ways from host memory to the device", description, _draw)}


def _draw(canvas: Canvas) -> None:
    y = canvas.legend(0, {kind: f"moved by {name}" for kind, name in MOVERS.items()})
    box = 84.0
    for way in WAYS:
        canvas.words(0, y + 10, way.name, "name")
        canvas.words(canvas.width, y + 10, way.note, "quiet", "end")
        stops = [0.0, (canvas.width - box) / 2, canvas.width - box]
        stops = stops if len(way.memories) == 2 else [stops[0], stops[2]]
        for x, memory in zip(stops, (*way.memories, "device"), strict=True):
            canvas.node(x, y + 17, box, 22, memory)
        for index, mover in enumerate(way.movers):
            canvas.arrow(stops[index] + box + 3, y + 28, stops[index + 1] - 3, y + 28, mover)
        y += 56
