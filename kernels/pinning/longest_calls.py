"""A table of the page: the cause of another process's longest call, run by run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from analysis.api.charts import PageTable, StudyFacts, machines_by_evidence
from analysis.api.quantities import percent, quantity
from analysis.api.study import parse_case

from .waits import SLOW_S

VARIANT: Final = "timed_chunks"
NOT_MEASURED: Final = "No machine has timed single chunks yet."
METRICS: Final = {
    "pinning": ("call_worst", "chunk_register_worst"),
    "unpinning": ("unpin_worst", "chunk_unregister_worst"),
}
"""By what the program does: the neighbour's longest call, and the longest time of a chunk."""
PARTS: Final = ("in_chunks", "in_one", "end_gap")
"""Further metrics of the longest call."""

MOST: Final = 0.5
IN_ONE: Final = 0.8
IN_CHUNKS: Final = 0.9
"""Shares of the longest call that name a cause. The last two are those of the claims."""
END_GAP_S: Final = 0.0001
"""A call that waits for several chunks ends within this time of the end of one, as in the claim."""

SHORT: Final = f"not long: at most {SLOW_S * 1e3:g} ms"
NO_CORE: Final = "waited for a core"
SLOW_ALONE: Final = "a call alone takes at least half as long"
TOUCHING: Final = "slow while pages are touched, before registration"
ONE_CHUNK: Final = "waited for one chunk"
MORE_CHUNKS: Final = "waited for several chunks in turn"
UNKNOWN: Final = "unexplained"


@dataclass(frozen=True)
class LongestCall:
    """The neighbour's longest call of one run. Shares are of its time; `queued` is None where the
    system does not count it."""

    seconds: float
    alone_s: float
    chunk_s: float
    in_chunks: float
    in_one: float
    end_gap_s: float
    touching: float
    queued: float | None

    @property
    def cause(self) -> str:
        """The first cause that explains a call above SLOW_S."""
        if self.seconds <= SLOW_S:
            return SHORT
        causes = {
            NO_CORE: (self.queued or 0) >= MOST,
            SLOW_ALONE: self.alone_s >= MOST * self.seconds,
            TOUCHING: self.touching >= MOST,
            ONE_CHUNK: self.in_one >= IN_ONE,
            MORE_CHUNKS: self.in_chunks >= IN_CHUNKS and self.end_gap_s <= END_GAP_S,
        }
        return next((cause for cause, holds in causes.items() if holds), UNKNOWN)


def longest_calls(facts: StudyFacts) -> PageTable:
    """A row for each machine, size of a chunk, pinning or unpinning, and run."""
    shares = ["in one chunk", "in other chunks", "while pages are touched", "rest of the call"]
    columns = ["machine", "chunk", "during", "longest call", "longest call alone"]
    columns += ["longest time of a chunk", *shares, "waiting for a core"]
    columns += ["gap to the nearest end of a chunk", f"cause, if above {SLOW_S * 1e3:g} ms"]
    rows = [
        [facts.inputs.called(machine), f"{mib} MiB", action, *_row(call)]
        for machine in machines_by_evidence(facts)
        for mib, case in sorted(_cases(facts).items())
        for action in METRICS
        for call in _measured(facts, machine, case, action)
    ]
    return PageTable(columns, rows, NOT_MEASURED, columns[3:-1])


def _cases(facts: StudyFacts) -> Mapping[int, str]:
    """The cases by MiB of a chunk."""
    variant = facts.study.variant(VARIANT)
    usual = variant.constants["chunk_mib"]
    return {int(parse_case(one.id).get("chunk_mib", usual)): one.id for one in variant.cases}


def _row(call: LongestCall) -> Iterator[str]:
    for seconds in (call.seconds, call.alone_s, call.chunk_s):
        yield quantity(seconds, "s")
    others = call.in_chunks - call.in_one
    for share in (call.in_one, others, call.touching, 1 - call.in_chunks - call.touching):
        yield percent(max(share, 0.0))
    yield "not counted" if call.queued is None else percent(call.queued)
    yield quantity(call.end_gap_s, "s")
    yield call.cause


def _measured(facts: StudyFacts, machine: str, case: str, action: str) -> Iterator[LongestCall]:
    """The longest call of each run, oldest first."""
    call, chunk = METRICS[action]

    def by_run(metric: str) -> list[float]:
        return facts.by_fresh_run(machine, VARIANT, case, metric)

    longest = by_run(call)
    needed = ["alone_worst", chunk, *(f"{call}_{name}" for name in PARTS)]
    columns = [longest, *map(by_run, needed)]
    if any(len(column) != len(longest) for column in columns):
        return
    # Nothing is touched during unpinning, and not every system counts waits for a core.
    touching, queued = by_run(f"{call}_touching"), by_run(f"{call}_queued")
    for number, values in enumerate(zip(*columns, strict=True)):
        seconds, alone_s, chunk_s, in_chunks, in_one, end_gap_s = values
        yield LongestCall(
            seconds,
            alone_s,
            chunk_s,
            in_chunks,
            in_one,
            end_gap_s,
            touching[number] if len(touching) == len(longest) else 0.0,
            queued[number] if len(queued) == len(longest) else None,
        )
