"""The tables of pages: all ways by size, and the calls of engines beside the call to use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.quantities import ratio, whole

from .answering import Measured, Place
from .calls import in_words
from .ways_table import NOT_MEASURED, link, ways_table
from .widgets import answering

CALLS: Final = {"loop": "one copy per piece", "batch": "one batched call", "gather": "a kernel"}
"""Engine call for each transfer method."""
TOKENS: Final = 4096
"""Tokens of a restored prefix."""
LLAMA_LAYERS, LLAMA_TOKEN_BYTES = 32, 8 * 128 * 2
"""Of Llama 3.1 8B: layers, and bytes of the keys or the values of one token in one layer."""


@dataclass(frozen=True)
class Use:
    """Pieces that an engine moves to the device in one step, and its way of moving."""

    engine: str
    what: str
    size: int
    count: int
    way: str


def _blocks(tokens: int) -> int:
    return TOKENS // tokens


USES: Final = (
    Use(
        "vLLM before 0.12",
        "prefix, a block of 16 tokens per layer, keys and values apart",
        16 * LLAMA_TOKEN_BYTES,
        _blocks(16) * LLAMA_LAYERS * 2,
        "batch",
    ),
    Use(
        "vLLM since 0.12",
        "prefix, a block of 16 tokens of all layers",
        16 * LLAMA_TOKEN_BYTES * LLAMA_LAYERS * 2,
        _blocks(16),
        "batch",
    ),
    Use("vLLM", "sparse attention, rows of one request", 656, 2048, "gather"),
    Use("vLLM", "sparse attention, blocks of 64 rows", 64 * 656, 64, "batch"),
    Use(
        "sglang HiCache",
        "prefix, one layer, pages of 1 token",
        LLAMA_TOKEN_BYTES,
        TOKENS * 2,
        "gather",
    ),
    Use(
        "sglang HiCache",
        "prefix, one layer, pages of 64 tokens",
        64 * LLAMA_TOKEN_BYTES,
        _blocks(64) * 2,
        "gather",
    ),
    Use(
        "sglang HiCache",
        "the same with --hicache-io-backend direct",
        64 * LLAMA_TOKEN_BYTES,
        _blocks(64) * 2,
        "loop",
    ),
)


def engines(facts: StudyFacts) -> PageTable:
    """A row for each of USES on the machine that has measured the most scattered pieces."""
    lists = [here for place, here in answering(facts).items() if place[1:] == Place("")[1:]]
    here = max(lists, key=lambda one: len(one.times), default=None)
    rows = [] if here is None else [_row(here, use) for use in USES]
    called = "" if here is None else facts.inputs.called(here.place.machine)
    columns = ["engine", "what it moves", "piece", "pieces", "its call", f"time on {called}"]
    columns += ["use", "time, rate", "gain"]
    return PageTable(columns, rows, NOT_MEASURED, ["piece", "pieces", columns[5], "gain"])


def _row(here: Measured, use: Use) -> list[object]:
    piece = [use.engine, use.what, link(here.place, use.size, use.count), whole(use.count)]
    piece.append(CALLS[use.way])
    found = here.answer(use.size, use.count)
    if found is None:
        return [*piece, "", "not measured", "", ""]
    today = f"pinned_list_{use.way}"
    best = [in_words(found.way), f"{here.time(found, found.way)}, {here.rate(found, found.way)}"]
    if today not in found.seconds:
        return [*piece, "not measured", *best, ""]
    gain = found.over_fastest(today) / found.over_fastest(found.way)
    same = "none: already used" if today == found.way else ratio(gain)
    return [*piece, here.time(found, today), *best, same]


TABLES: Final[Mapping[str, Callable[[StudyFacts], PageTable]]] = {
    "engines": engines,
    "ways": ways_table,
}
