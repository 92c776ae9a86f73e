"""Causes of another process's waits: its calls compared with simultaneous registrations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from .neighbours import latencies, summary

Calls = npt.NDArray[np.int64]
"""Calls of one thread in order, [calls, 4]: begin and end in ns of the monotonic clock, ns on a
core, and ns in the queue of a core or -1 where the system does not count them."""

Window = tuple[int, int]
"""Begin and end in ns of the monotonic clock."""

SLOW_S: Final = 0.006
"""The claims allow the longest call this time."""
CHUNKS_ALLOWED: Final = 1.2
MARGIN_S: Final = 0.001
"""A call that waits for one registration takes at most CHUNKS_ALLOWED times the longest one and
this time."""


def overlaps_ns(calls: Calls, others: Calls) -> Calls:
    """Nanoseconds that each call shares with each of the others, [calls, others]."""
    begin = np.maximum(calls[:, None, 0], others[None, :, 0])
    end = np.minimum(calls[:, None, 1], others[None, :, 1])
    return np.asarray(np.maximum(end - begin, 0), np.int64)


def within(calls: Calls, window: Window) -> Calls:
    """The calls that overlap the window."""
    begin, end = window
    return calls[(calls[:, 0] < end) & (calls[:, 1] > begin)]


def chunk_times(prefix: str, chunks: Calls) -> dict[str, float]:
    """Statistics of registrations or unregistrations, in s, and what the thread of the longest one
    did. Empty without any."""
    if not len(chunks):
        return {}
    longest = Call(chunks[np.argmax(chunks[:, 1] - chunks[:, 0])])
    shares = {"running": longest.running, "queued": longest.queued}
    return {
        **summary(prefix, latencies(chunks[:, :2], _span(chunks))),
        **{f"{prefix}worst_{name}": share for name, share in shares.items() if share is not None},
    }


@dataclass(frozen=True)
class Call:
    """One call: int64 [4]."""

    times: Calls

    @property
    def ns(self) -> int:
        return max(int(self.times[1] - self.times[0]), 1)

    @property
    def running(self) -> float:
        """Share of its time in which its thread was on a core."""
        return self._share(self.times[2])

    @property
    def queued(self) -> float | None:
        """Share of its time in which its thread waited for a core; None if it is unknown."""
        return None if self.times[3] < 0 else self._share(self.times[3])

    def _share(self, ns: np.int64) -> float:
        # The counters are read just outside of the call, so they may show more than its time.
        return min(int(ns) / self.ns, 1.0)


def neighbour_waits(
    prefix: str, calls: Calls, chunks: Calls, window: Window, touching: Window | None = None
) -> dict[str, float]:
    """The neighbour's longest call in a window and what happened meanwhile, and the same for its
    slow calls. Empty without a call or a chunk.

    `touching`: the part of the window in which pages are touched and nothing is registered.
    """
    inside = within(calls, window)
    if not len(inside) or not len(chunks):
        return {}
    longest = inside[np.argmax(inside[:, 1] - inside[:, 0])]
    return {
        **summary(prefix, latencies(inside[:, :2], window)),
        **dict(_longest(f"{prefix}worst_", longest, chunks, touching)),
        **dict(_slow(f"{prefix}slow", inside, chunks)),
    }


def _longest(
    prefix: str, times: Calls, chunks: Calls, touching: Window | None
) -> Iterator[tuple[str, float]]:
    """The chunks that overlap the call, its shares, the distance of its end from the nearest end of
    a chunk, and its time over that which one chunk explains."""
    call = Call(times)
    shared_ns = overlaps_ns(times[None], chunks)[0]
    yield f"{prefix}chunks", float(np.count_nonzero(shared_ns))
    yield f"{prefix}in_chunks", int(shared_ns.sum()) / call.ns
    yield f"{prefix}in_one", int(shared_ns.max()) / call.ns
    yield f"{prefix}running", call.running
    if call.queued is not None:
        yield f"{prefix}queued", call.queued
    if touching is not None:
        touched = np.array([[*touching, 0, 0]], np.int64)
        yield f"{prefix}touching", int(overlaps_ns(times[None], touched)[0, 0]) / call.ns
    yield f"{prefix}end_gap", int(np.abs(chunks[:, 1] - times[1]).min()) * 1e-9
    longest_chunk_s = int((chunks[:, 1] - chunks[:, 0]).max()) * 1e-9
    yield f"{prefix}bound", call.ns * 1e-9 / (CHUNKS_ALLOWED * longest_chunk_s + MARGIN_S)


def _slow(name: str, calls: Calls, chunks: Calls) -> Iterator[tuple[str, float]]:
    """Number of calls above SLOW_S, and shares of their time; no shares without such a call."""
    slow = calls[(calls[:, 1] - calls[:, 0]) > SLOW_S * 1e9]
    yield name, float(len(slow))
    if not len(slow):
        return
    total_ns = int((slow[:, 1] - slow[:, 0]).sum())
    yield f"{name}_in_chunks", int(overlaps_ns(slow, chunks).sum()) / total_ns
    if (slow[:, 3] >= 0).all():
        yield f"{name}_queued", min(int(slow[:, 3].sum()) / total_ns, 1.0)


def _span(calls: Calls) -> Window:
    return int(calls[0, 0]), int(calls[-1, 1])
