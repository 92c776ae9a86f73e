"""Which call moves one block, even rows or scattered pieces: the questions of this study."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, Final

from analysis.api.answers import Axis, Choice, Question, Rule, Way
from analysis.api.study import CaseValue

from .kinds import MEMORIES, memory_of

DIRECTIONS: Final = {"h2d": "to the device", "d2h": "to the host"}
PLACE_KEYS: Final[Mapping[str, CaseValue]] = {"host": "pitched", "device": "packed", "busy": 0}
"""Keys of a case that describe the pieces' layout and the stream; without them, these hold."""
KEYS: Final = ("size", "count", "direction", *PLACE_KEYS)
ANY: Final = "any"
KIB: Final = 2**10
METHODS: Final = {
    "loop": Way("one cudaMemcpyAsync per piece"),
    "2d": Way("one cudaMemcpy2DAsync"),
    "batch": Way("one cudaMemcpyBatchAsync for all pieces"),
    "packed": Way("packing by one CPU thread, then one cudaMemcpyAsync", "1 core"),
    "list_packed_1": Way("packing by one CPU thread, then one cudaMemcpyAsync", "1 core"),
    "list_packed": Way("packing by all CPU threads, then one cudaMemcpyAsync", "all cores"),
    "graph": Way("a CUDA graph of copies, one after the other"),
    "gather_8": Way("our copy kernel with eight thread blocks", "8 SMs"),
    "gather": Way("our copy kernel on all SMs", "all SMs"),
    "bulk": Way("our kernel of bulk copies (TMA)", "all SMs"),
}
"""Calls by method, the simplest first: calls of the driver, then code on the CPU, then kernels,
fewer SMs first. One without an entry for pieces of a list has that for rows of a matrix."""
BY_DRIVER: Final = ("pinned_list_loop", "pinned_list_batch")
OF_MEMORY: Final = {
    "pageable": "from pageable memory",
    "write_combined": "from write-combined memory",
    "registered": "from memory registered after allocation",
    "registered_huge": "from registered huge pages",
}
_SIZE: Final = Axis("size", "size of a piece", 24 * KIB, is_bytes=True)
_COUNT: Final = Axis("count", "pieces of a request", 1024)
_DIRECTION: Final = Choice("direction", "direction", DIRECTIONS)
_LINK: Final = ("link_calibration", "copy_engine")


def _ways() -> dict[str, Way]:
    """The ways of moving pieces by variant, in the order of METHODS and then of memory; their
    words have the memory unless that is plain pinned memory."""
    ways: dict[str, Way] = {}
    for (method, way), memory in product(METHODS.items(), MEMORIES):
        of_memory = f", {OF_MEMORY[memory]}" if memory in OF_MEMORY else ""
        of_list = {f"list_{method}"} - METHODS.keys()
        for name in (method, *of_list):
            ways[f"{memory}_{name}"] = Way(f"{way.words}{of_memory}", way.takes)
    return ways


def _kind(count: int, host: str) -> str:
    return "block" if count == 1 else "even_rows" if host == "pitched" else "pieces"


Places = Callable[[str, Mapping[str, CaseValue]], Iterator[Mapping[str, Any]]]


def _places(kind: str) -> Places:
    """The situations of a kind that a case belongs to: of its memory, and of any memory."""

    def places(variant: str, case: Mapping[str, CaseValue]) -> Iterator[Mapping[str, Any]]:
        values = {**PLACE_KEYS, **case}
        if values.keys() != {*KEYS} or values["direction"] not in DIRECTIONS:
            return
        if _kind(int(values["count"]), str(values["host"])) != kind:
            return
        values["stream"] = "busy" if values["busy"] else "idle"
        # Write-combined memory is slow to read by the CPU, so it is no answer for any memory.
        memory = memory_of(variant)
        yield {**values, "memory": memory}
        if kind != "pieces" and memory != "write_combined":
            yield {**values, "memory": ANY}

    return places


_FIRST_PINNED: Final = dict.fromkeys(("pinned", *MEMORIES, ANY))
_MEMORY: Final = Choice("memory", "memory", {memory: memory for memory in _FIRST_PINNED})
_DEVICE: Final = {"packed": "packed", "pitched": "pitched"}

BLOCK: Final = Question(
    name="block",
    label="one contiguous block",
    cell="{size}",
    axes=[Axis("size", "size", 16 * KIB**2, is_bytes=True)],
    choices=[_DIRECTION, _MEMORY],
    ways=_ways(),
    places=_places("block"),
    link=_LINK,
)
EVEN_ROWS: Final = Question(
    name="even_rows",
    label="even rows of a matrix",
    cell="{count} × {size}",
    axes=[_SIZE, _COUNT],
    choices=[_DIRECTION, Choice("device", "on the device", _DEVICE), _MEMORY],
    ways=_ways(),
    places=_places("even_rows"),
    link=_LINK,
    multiple=16,
    rules=[
        Rule(
            "Even rows of at least 256 B: one `cudaMemcpy2DAsync`.",
            "pinned_2d",
            {"memory": ["pinned"]},
            {"size": (256, math.inf)},
        ),
    ],
)
PIECES: Final = Question(
    name="pieces",
    label="scattered pieces",
    cell="{count} × {size}",
    axes=[_SIZE, _COUNT],
    choices=[
        _DIRECTION,
        Choice("device", "on the device", {"scattered": "scattered", **_DEVICE}),
        Choice("stream", "stream", {"idle": "idle", "busy": "busy"}),
    ],
    ways=_ways(),
    places=_places("pieces"),
    link=_LINK,
    multiple=16,
    rules=[
        Rule(
            "At least 256 scattered pieces below 4 KiB, to the device: a kernel on all SMs.",
            "pinned_list_gather",
            {"direction": ["h2d"], "device": ["scattered"]},
            {"size": (1, 4 * KIB - 1), "count": (256, math.inf)},
        ),
        Rule(
            "At least 64 scattered pieces of 4 KiB to 2 MiB: a kernel of eight thread blocks.",
            "pinned_list_gather_8",
            {"device": ["scattered"]},
            {"size": (4 * KIB, 2 * KIB**2), "count": (64, math.inf)},
        ),
        Rule(
            "No kernel allowed, at least 16 pieces above 24 KiB: one batched call. Smaller ones to"
            " the device: never on an idle stream.",
            "pinned_list_batch",
            {"device": ["scattered"]},
            {"size": (24 * KIB + 1, math.inf), "count": (16, math.inf)},
            BY_DRIVER,
        ),
    ],
    # vLLM copies pieces by a kernel of its own, of which ours takes the place here.
    constants={
        "vLLM's thresholds": [
            Rule(
                "",
                "pinned_list_gather",
                bounds={"size": (1, 28 * KIB - 1), "count": (16, math.inf)},
            ),
            Rule("", "pinned_list_batch"),
        ]
    },
)

QUESTIONS: Final = [BLOCK, EVEN_ROWS, PIECES]
