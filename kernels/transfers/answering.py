"""Which call moves pieces of a size, number and layout: answers by machine and situation.

The page's table, its form, the command and the file that an engine loads use these answers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pandas as pd

from analysis.api.quantities import binary, digits, extent, quantity, ratio, whole
from analysis.api.study import Study
from analysis.api.tables import NEAR, WITHIN, Answer, Point, Spans, all_answers, answer, nearest

from .kinds import MEMORIES, memory_of, method_of
from .measured import METRIC, moves

LAYOUTS: Final = ("packed", "pitched", "scattered")
ANY: Final = "any"
FORMAT: Final = "hotpath-transfers-answers"
VERSION: Final = 1
MULTIPLE: Final = 16
"""Bytes. Several pieces of a size that is no multiple of these were not measured."""
IN_WORDS: Final = {
    "loop": "one cudaMemcpyAsync per piece",
    "2d": "one cudaMemcpy2DAsync",
    "batch": "one cudaMemcpyBatchAsync for all pieces",
    "packed": "pack the pieces by one CPU thread, then one cudaMemcpyAsync",
    "list_packed_1": "pack the pieces by one CPU thread, then one cudaMemcpyAsync",
    "list_packed": "pack the pieces by all CPU threads, then one cudaMemcpyAsync",
    "graph": "a CUDA graph of copies, one after the other",
    "gather": "our copy kernel on all SMs",
    "gather_8": "our copy kernel with eight thread blocks",
    "bulk": "our kernel of bulk copies (TMA)",
}
"""Calls by method, the simplest first: calls of the driver, then code on the CPU, then kernels. One
without an entry for pieces of a list has that for rows of a matrix."""
OF_MEMORY: Final = {
    "pageable": "from pageable memory",
    "write_combined": "from write-combined memory",
    "registered": "from memory registered after allocation",
    "registered_huge": "from registered huge pages",
}
LEAST_RATE: Final = 1e7
"""Lower rates, in B/s, are not shown in GB/s."""


def in_words(variant: str) -> str:
    """The call of a variant in words, with its memory unless that is plain pinned memory."""
    memory = memory_of(variant)
    call = IN_WORDS.get(_method(variant), variant)
    return f"{call}, {OF_MEMORY[memory]}" if memory in OF_MEMORY else call


def simplest_first(variants: Iterable[str]) -> list[str]:
    """Ways in the order of IN_WORDS, equal calls in the order of their memory."""
    methods = [*IN_WORDS]

    def place(variant: str) -> tuple[int, int, str]:
        return methods.index(_method(variant)), MEMORIES.index(memory_of(variant)), variant

    return sorted(variants, key=place)


def _method(variant: str) -> str:
    """The key of a variant in IN_WORDS."""
    method = method_of(variant)
    return method if method in IN_WORDS else method.removeprefix("list_")


class Place(NamedTuple):
    """A question but for size and number: the machine, the memory or ANY, the direction,
    the layouts, and whether the stream has unfinished work. One block is packed on both sides."""

    machine: str
    memory: str = "pinned"
    direction: str = "h2d"
    host: str = "scattered"
    device: str = "scattered"
    is_busy: bool = False

    @property
    def layout(self) -> str:
        if self.host == self.device == "packed":
            return "one block"
        return f"{self.host} on the host, {self.device} on the device"

    def __str__(self) -> str:
        memory = f"{self.memory} memory"
        stream = "busy stream" if self.is_busy else "idle stream"
        return f"{self.direction}, {self.layout}, {memory}, {stream}"


@dataclass(frozen=True)
class Measured:
    """Seconds of each way by size and number of pieces: until all have arrived, never less than the
    link needs, and until the call returns."""

    place: Place
    times: dict[Point, dict[str, float]]
    returns: dict[Point, dict[str, float]]

    @property
    def multiple(self) -> int:
        """All sizes with an answer are multiples of these bytes."""
        return 1 if self.place.layout == "one block" else MULTIPLE

    @property
    def simplest_first(self) -> list[str]:
        return simplest_first({way for ways in self.times.values() for way in ways})

    def answer(self, size: int, count: int) -> Answer | None:
        if size % self.multiple:
            return None
        return answer(self.times, self.simplest_first, (size, count))

    def all_answers(self) -> tuple[list[Answer], Spans]:
        return all_answers(self.times, self.simplest_first)

    def in_words(self, found: Answer) -> list[str]:
        """The answer, the cells that it comes from, and what else to know."""
        _, time, rate, _, _ = self.row(found, found.way)
        figures = f"{time}, {rate}" if len(found.corners) == 1 else rate
        lines = [f"Use {in_words(found.way)}: {figures}."]
        lines.append(f"Measured: {', '.join(map(pieces, found.corners))}.")
        lines += found.remarks(in_words)
        if found.not_everywhere:
            some = "; ".join(map(in_words, found.not_everywhere))
            lines.append(f"Measured in some of these cells only: {some}.")
        return lines

    def row(self, found: Answer, way: str) -> list[str]:
        """The cells of a way in the order of COLUMNS."""
        seconds = found.seconds[way]
        cells = zip(found.corners, seconds, strict=True)
        rates = [math.prod(at) / time for at, time in cells]
        rate = " to ".join(dict.fromkeys(map(rate_text, (min(rates), max(rates)))))
        returns = [self.returns.get(point, {}).get(way, math.nan) for point in found.corners]
        cost = "" if any(map(math.isnan, returns)) else extent(returns, "s")
        over = ratio(found.over_fastest(way))
        return [in_words(way), extent(seconds, "s"), rate, cost, over]

    def cell(self, point: Point) -> str:
        """A measured cell with its answer: `256 × 4 KiB in 20.5 µs, by one cudaMemcpyAsync`."""
        found = answer({point: self.times[point]}, self.simplest_first, point)
        assert found is not None
        way, time, *_ = self.row(found, found.way)
        return f"{pieces(point)} in {time}, by {way}"

    def refusal(self, size: int, count: int) -> str:
        """Says that a question has no answer, and names the nearest measured cell."""
        text = f"not measured: {pieces((size, count))}"
        if size % self.multiple:
            return f"{text}. All measured sizes are multiples of {self.multiple} B"
        point = nearest(self.times, (size, count))
        return f"{text}. The nearest measured cell: {self.cell(point)}" if point else text


COLUMNS: Final = ("way", "time", "rate", "call returns after", "over the fastest")


def measured(
    study: Study, summary: pd.DataFrame, links: Mapping[str, float]
) -> dict[Place, Measured]:
    """The measured times of all situations; `links` is the rate of each machine's link in B/s."""
    found: dict[Place, Measured] = {}
    for row in moves(study, summary).to_dict("records"):
        machine, point = row["machine"], (int(row["size"]), int(row["count"]))
        host, device = ("packed", "packed") if point[1] == 1 else (row["host"], row["device"])
        is_whole, seconds = row["metric"] == METRIC, row["median"]
        least = math.prod(point) / links.get(machine, math.inf) if is_whole else 0.0
        # Write-combined memory is slow to read by the CPU, so it is no answer for any memory.
        memories = [row["memory"], *([ANY] if row["memory"] != "write_combined" else [])]
        for memory in memories:
            place = Place(machine, memory, row["direction"], host, device, bool(row["busy"]))
            here = found.setdefault(place, Measured(place, defaultdict(dict), defaultdict(dict)))
            by_point = here.times if is_whole else here.returns
            by_point[point][row["variant"]] = max(seconds, least)
    return {place: here for place, here in found.items() if here.times}


def as_file(found: Mapping[Place, Measured], machine: str) -> dict[str, Any]:
    """The answers of a machine as JSON for a program, as docs/contract.md describes it."""
    tables = [_table(here) for place, here in found.items() if place.machine == machine]
    head = {"format": FORMAT, "version": VERSION, "machine": machine}
    return {**head, "near": NEAR, "within": WITHIN, "tables": tables}


def _table(here: Measured) -> dict[str, Any]:
    answers, spans = here.all_answers()
    return {
        **{key: value for key, value in here.place._asdict().items() if key != "machine"},
        "multiple": here.multiple,
        "spans": spans,
        "answers": [
            {
                "way": one.way,
                "call": in_words(one.way),
                "cells": one.corners,
                "seconds": {w: [float(f"{s:.4g}") for s in one.seconds[w]] for w in one.seconds},
            }
            for one in answers
        ],
    }


def pieces(point: Point) -> str:
    size, count = point
    return f"{whole(count)} × {binary(size)}"


def rate_text(rate: float) -> str:
    """A rate in B/s, in GB/s unless it is low."""
    return f"{digits(rate / 1e9)} GB/s" if rate >= LEAST_RATE else quantity(rate, "B/s")
