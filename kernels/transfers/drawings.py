"""How pieces get from host memory to the device: who moves them, and through which memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Canvas, Drawing

CPU, ENGINE, KERNEL, PAGES = "second", "first", "third", "fourth"
MOVERS: Final = {
    CPU: "the CPU",
    ENGINE: "the copy engine",
    KERNEL: "multiprocessors",
    PAGES: "the driver, by pages",
}
"""Who moves the bytes of a hop, by its colour."""


@dataclass(frozen=True)
class Way:
    """Memories from the host to the device, and who moves the bytes from each to the next."""

    name: str
    memories: tuple[str, ...]
    movers: tuple[str, ...]
    told: str


WAYS: Final = (
    Way("pageable", ("pageable", "driver's"), (CPU, ENGINE), "an extra copy by the driver"),
    Way("pinned, registered", ("page-locked",), (ENGINE,), "the call only passes addresses on"),
    Way("packed", ("pieces", "staging"), (CPU, ENGINE), "the CPU packs, one copy moves all"),
    Way("gather", ("page-locked",), (KERNEL,), "a kernel reads the pieces where they are"),
    Way("managed", ("managed",), (PAGES,), "a page migrates when it is touched"),
)


def drawings(facts: StudyFacts) -> dict[str, Drawing]:
    """`ways`: hops by kind of memory and way of moving."""
    told = " ".join(
        f"{way.name}: {', then '.join(MOVERS[mover] for mover in way.movers)}; {way.told}."
        for way in WAYS
    )
    return {"ways": Drawing("Ways from host memory to the device", told, _draw)}


def _draw(canvas: Canvas) -> None:
    y = canvas.legend(0, {kind: f"moved by {name}" for kind, name in MOVERS.items()})
    box = 84.0
    for way in WAYS:
        canvas.words(0, y + 10, way.name, "name")
        canvas.words(canvas.width, y + 10, way.told, "quiet", "end")
        stops = [0.0, (canvas.width - box) / 2, canvas.width - box]
        stops = stops if len(way.memories) == 2 else [stops[0], stops[2]]
        for x, memory in zip(stops, (*way.memories, "device"), strict=True):
            canvas.node(x, y + 17, box, 22, memory)
        for index, mover in enumerate(way.movers):
            canvas.arrow(stops[index] + box + 3, y + 28, stops[index + 1] - 3, y + 28, mover)
        y += 56
