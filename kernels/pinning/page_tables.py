"""The tables of the page: why another process waits longer than it should."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import digits, quantity, whole
from analysis.api.study import parse_case

from .longest_calls import VARIANT as TIMED
from .longest_calls import longest_calls

NOT_MEASURED: Final = "No machine has measured these waits yet."
LIMIT_S: Final = 0.006
"""The claims allow the longest call of another process this time."""
CASE: Final = "mib=16384,beside=process,calls=malloc"
CHUNKED: Final = ("chunks", "small_chunks")
WAITS: Final = {
    "pinning": ("call_worst", "register_time"),
    "unpinning": ("unpin_worst", "unpin_time"),
}
"""By what the program does: the neighbour's longest call, and the time of all chunks."""
LIMIT: Final = f"{LIMIT_S * 1e3:g} ms"
ONE_CHUNK: Final = f"one chunk takes at least {LIMIT} by itself"
TWO_CHUNKS: Final = "the wait is at most two chunks in turn"
LONGER: Final = "the wait is longer than two mean chunks; single chunks were not timed"


@dataclass(frozen=True)
class Wait:
    """One run: the longest call of the other process, and the mean time of a chunk."""

    longest_s: float
    chunk_s: float

    @property
    def cause(self) -> str:
        """The fewest chunks that explain a wait above LIMIT_S; empty for a shorter wait."""
        if self.longest_s <= LIMIT_S:
            return ""
        if self.chunk_s >= LIMIT_S:
            return ONE_CHUNK
        return TWO_CHUNKS if self.longest_s <= 2 * self.chunk_s else LONGER


def waits(facts: StudyFacts) -> PageTable:
    """A row for each machine, size of a chunk, and pinning or unpinning."""
    columns = [
        "machine",
        "chunk",
        "during",
        "mean time of a chunk",
        "longest call of the other process",
    ]
    columns += [
        "longest call over mean chunk, by run",
        f"runs within {LIMIT}",
        "cause in the others",
    ]
    rows = [
        [facts.inputs.called(machine), chunk, action, *_row(found)]
        for machine in machines_by_evidence(facts)
        for chunk, action, found in _measured(facts, machine)
    ]
    return PageTable(columns, rows, NOT_MEASURED, [*columns[3:4], columns[6]])


def _row(found: Sequence[Wait]) -> Iterator[str]:
    longest = [one.longest_s for one in found]
    yield quantity(median(one.chunk_s for one in found), "s")
    yield _range(longest)
    yield ", ".join(digits(one.longest_s / one.chunk_s, 2) for one in found)
    yield f"{sum(not one.cause for one in found)} of {len(found)}"
    causes = Counter(one.cause for one in found if one.cause)
    yield "; ".join(f"{number}: {cause}" for cause, number in causes.most_common())


def _measured(facts: StudyFacts, machine: str) -> Iterator[tuple[str, str, list[Wait]]]:
    """Size of a chunk, what the program does, and the waits of its runs."""
    for variant in CHUNKED:
        mib = int(facts.study.variant(variant).constants["chunk_mib"])
        chunks = int(parse_case(CASE)["mib"]) / mib
        for action, metrics in WAITS.items():
            longest, every = (
                facts.by_fresh_run(machine, variant, CASE, metric) for metric in metrics
            )
            if longest and len(longest) == len(every):
                pairs = zip(longest, every, strict=True)
                yield f"{mib} MiB", action, [Wait(one, all_s / chunks) for one, all_s in pairs]


def large(facts: StudyFacts) -> PageTable:
    """A row for each machine and way of pinning 16 GiB, in the order of the steps."""
    columns = ["machine", "way", "runs", "pinned in", "longest call of the other process"]
    columns += ["longest call during unpinning", f"runs with both within {LIMIT}"]
    rows = [
        [facts.inputs.called(machine), variant.title, *row]
        for machine in machines_by_evidence(facts)
        for variant in facts.study.variants
        if variant.name != TIMED and (row := _way(facts, machine, variant.name))
    ]
    return PageTable(columns, rows, NOT_MEASURED, [*columns[2:3], columns[-1]])


def _way(facts: StudyFacts, machine: str, variant: str) -> list[str]:
    """Empty without runs that have all times."""
    metrics = ("host_time", "call_worst", "unpin_worst")
    found = [facts.by_fresh_run(machine, variant, CASE, metric) for metric in metrics]
    if not found[0] or len({len(by_run) for by_run in found}) > 1:
        return []
    within = sum(max(waits) <= LIMIT_S for waits in zip(*found[1:], strict=True))
    runs = len(found[0])
    return [whole(runs), *map(_range, found), f"{within} of {runs}"]


def _range(seconds: Sequence[float]) -> str:
    low, high = (quantity(end, "s") for end in (min(seconds), max(seconds)))
    return low if low == high else f"{low} to {high}"


TABLES: Final[Mapping[str, Callable[[StudyFacts], PageTable]]] = {
    "large": large,
    "waits": waits,
    "longest_calls": longest_calls,
}
