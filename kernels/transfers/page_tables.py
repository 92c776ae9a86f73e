"""The tables of pages: all ways by size, and the calls of engines beside the fastest way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from markupsafe import Markup

from analysis.api.charts import PageTable, StudyFacts
from analysis.api.quantities import digits, quantity, ratio, whole

from . import adviser_limits
from .adviser import METRIC, SURE, Advice, Adviser, Job, certainty
from .calls import in_words
from .chart_parts import binary
from .kinds import method_of
from .ways_table import NOT_MEASURED, ways_table
from .widgets import ordered_advisers

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
    """A row for each of USES on the machine that has measured the most ways."""
    adviser = next(iter(ordered_advisers(facts)), None)
    rows = [] if adviser is None else [_row(adviser, use) for use in USES]
    called = "" if adviser is None else facts.inputs.called(adviser.machine)
    columns = ["engine", "what it moves", "piece", "pieces", "its call", f"time on {called}"]
    columns += ["fastest way", "time, rate", "gain"]
    numeric = ["piece", "pieces", columns[5], "gain"]
    return PageTable(columns, rows, NOT_MEASURED, numeric)


def _row(adviser: Adviser, use: Use) -> list[object]:
    advices = [
        one for one in adviser.advise(Job(use.size, use.count)) if _covers(adviser, one, use.size)
    ]
    piece = [use.engine, use.what, _link(use), whole(use.count)]
    if not advices:
        return [*piece, CALLS[use.way], "", "none measured", "", ""]
    best = advices[0]
    rate = f"{digits(use.size * use.count / best.seconds / 1e9)} GB/s"
    today = next(_of_way(advices, use.way), None)
    times = [CALLS[use.way], quantity(today.seconds, "s") if today else "not measured"]
    found = [in_words(best.variant), f"{quantity(best.seconds, 's')}, {rate}"]
    return [*piece, *times, *found, _gain(today, best) if today else ""]


def _covers(adviser: Adviser, advice: Advice, size: int) -> bool:
    """Whether the way was measured with smaller and larger pieces, so that nothing is guessed."""
    sizes = [
        one
        for way in adviser.ways
        if way.variant == advice.variant and way.direction == "h2d" and METRIC in way.costs
        for one in way.costs[METRIC].sizes
    ]
    return min(sizes) <= size <= max(sizes)


def _of_way(advices: list[Advice], way: str) -> Iterator[Advice]:
    """The advices for a way, for pieces of a list or for rows."""
    return (one for one in advices if method_of(one.variant).removeprefix("list_") == way)


def _gain(today: Advice, best: Advice) -> str:
    if today.variant == best.variant:
        return "none: already fastest"
    sure = "" if certainty(best, today) >= SURE else ", not sure"
    return ratio(today.seconds / best.seconds) + sure


def _link(use: Use) -> Markup:
    """The size of a piece, as a link to the adviser with this choice."""
    size = binary(use.size)
    asked = urlencode({"adviser.size": size, "adviser.count": use.count})
    return Markup('<a href="../what_to_call/?{}#widget-adviser">{}</a>').format(asked, size)


TABLES: Final[Mapping[str, Callable[[StudyFacts], PageTable]]] = {
    "adviser_evidence": adviser_limits.evidence,
    "adviser_limits": adviser_limits.limits,
    "engines": engines,
    "ways": ways_table,
}
