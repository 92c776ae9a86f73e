"""Requests to PyTorch's allocator, from a file of torch.cuda.memory._dump_snapshot.

The file may come from any version of PyTorch and from anyone: it is read without running code that
it names.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, Discriminator, Field, Tag

from analysis.api.files import read_keys
from analysis.api.study import FieldError, HotpathError, visible

from .patterns import Pattern, Recorder

REQUESTS: Final = ("alloc", "free_requested", "free_completed", "free")
"""Events of allocations and frees; the last is of tools that write one event for a free."""
DECIDED: Final = ("segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot")
"""Events that an allocator decides by itself, so that none is replayed."""
MAX_FILE_BYTES: Final = 2**32
MAX_DEVICES: Final = 64
MAX_STREAMS: Final = 256

Number = Annotated[int, Field(ge=0, lt=2**64)]
Bytes = Annotated[int, Field(ge=0, le=2**48)]


class _Part(BaseModel, strict=True):
    """Base of the objects in a snapshot. Other keys than those named are not read."""


class Other(_Part):
    """An event of another kind than a request."""

    action: str


class Request(Other):
    """An event of an allocation or a free."""

    addr: Number
    size: Bytes
    stream: Number = 0


def _kind(event: Any) -> str:
    action = event.get("action") if isinstance(event, dict) else ""
    return "request" if isinstance(action, str) and action in REQUESTS else "other"


Event = Annotated[
    Annotated[Request, Tag("request")] | Annotated[Other, Tag("other")], Discriminator(_kind)
]


class Block(_Part):
    """A block of a segment. Older versions of PyTorch leave out its address and requested size."""

    state: str
    size: Bytes
    address: Number | None = None
    requested_size: Bytes | None = None


class Segment(_Part):
    """A segment of a device."""

    address: Number = 0
    device: int = 0
    stream: Number = 0
    blocks: list[Block]


class Snapshot(_Part):
    """`segments` when it was taken, and the events of each device before."""

    segments: list[Segment] = []
    device_traces: Annotated[list[list[Event]], Field(max_length=MAX_DEVICES)]


Live = dict[int, tuple[int, int]]
"""Live allocations by address: requested bytes, and the handle of the stream."""


@dataclass
class Recording:
    """The requests to a `device` as a tape, at whose end allocations that outlive it are freed.

    The first `live` of its `allocations` are from before the recording. `peak_bytes` is the largest
    sum of requested bytes that are live at a time. `left_out` counts events of other kinds.
    """

    device: int
    live: int
    allocations: int
    peak_bytes: int
    pattern: Pattern
    left_out: Counter[str]


def read_snapshot(path: Path) -> list[Recording]:
    """The recordings of all devices that have requests; HotpathError if there is none."""
    snapshot, recordings = _snapshot(path), []
    for device, events in enumerate(snapshot.device_traces):
        where = f"{path}: device_traces.{device}"
        segments = [segment for segment in snapshot.segments if segment.device == device]
        recording = _recording(device, _live_at_start(segments, events), events, where)
        if recording.pattern.streams > MAX_STREAMS:
            raise FieldError(where, f"at most {MAX_STREAMS} streams", recording.pattern.streams)
        if recording.allocations > recording.live:
            recordings.append(recording)
    if not recordings:
        wanted = "an event alloc after torch.cuda.memory._record_memory_history()"
        raise FieldError(f"{path}: device_traces", wanted, "none")
    return recordings


class _Plain(pickle.Unpickler):
    """Reads plain values only: a file must not choose code to run."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it needs {module}.{name}")


def _snapshot(path: Path) -> Snapshot:
    expected = f"{path}: expected a file of torch.cuda.memory._dump_snapshot"
    if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
        raise HotpathError(f"{expected}, of at most {MAX_FILE_BYTES} bytes, got none")
    try:
        with path.open("rb") as file:
            found = _Plain(file).load()
    except Exception as error:  # a damaged pickle can raise any
        reason = visible(str(error) or type(error).__name__)
        raise HotpathError(f"{expected}, got none: {reason}") from error
    try:
        return read_keys(Snapshot, found, str(path))
    except ValueError as error:  # a number is too long to be shown
        raise HotpathError(f"{expected}, got a number of more than 64 bits") from error


def _live_at_start(segments: Iterable[Segment], events: Iterable[Other]) -> Live:
    """The allocations that were live before `events`, which `segments` follow: those that are freed
    without having been allocated, and those in `segments` that no event names."""
    first: dict[int, Request] = {}
    for event in events:
        if isinstance(event, Request):
            first.setdefault(event.addr, event)
    live = {at: (one.size, one.stream) for at, one in first.items() if one.action != "alloc"}
    for segment in segments:
        address = segment.address
        for block in segment.blocks:
            address = address if block.address is None else block.address
            if block.state == "active_allocated" and address not in first:
                size = block.size if block.requested_size is None else block.requested_size
                live[address] = size, segment.stream
            address += block.size
    return dict(sorted(live.items()))


def _recording(device: int, live: Live, events: Iterable[Other], where: str) -> Recording:
    """The requests of `events`, after the allocations `live`. A free counts where it was requested,
    or else where it was completed. HotpathError for a free of nothing, at a place in `where`."""
    heap, left_out = _Heap(), Counter[str]()
    for address, (size, stream) in live.items():
        heap.add(address, size, stream)
    completes: set[int] = set()  # addresses whose free was requested
    for place, event in enumerate(events):
        if not isinstance(event, Request):
            if event.action not in DECIDED:
                left_out[visible(event.action)] += 1
        elif event.action == "alloc":
            heap.free_within(event.addr, max(event.size, 1))
            completes.discard(event.addr)
            heap.add(event.addr, event.size, event.stream)
        elif event.action == "free_completed" and event.addr in completes:
            completes.remove(event.addr)
        elif event.addr not in heap.held:
            expected = f"a live allocation to free at {event.addr:#x}"
            raise FieldError(f"{where}.{place}", expected, "none")
        else:
            heap.free_within(event.addr, 1)
            if event.action == "free_requested":
                completes.add(event.addr)
    pattern = Pattern([heap.tape.tape()], streams=len(heap.streams))
    return Recording(device, len(live), heap.allocations, heap.peak_bytes, pattern, left_out)


class _Heap:
    """The live allocations by address, each `held` with its slot and size, and the `tape` of all.
    `streams` are numbers by handle."""

    def __init__(self) -> None:
        self.tape, self.streams = Recorder(), {0: 0}
        self.held: dict[int, tuple[int, int]] = {}
        self.allocations = self.peak_bytes = self._live_bytes = 0
        self._starts: list[int] = []

    def add(self, address: int, size: int, stream: int) -> None:
        index = self.streams.setdefault(stream, len(self.streams))
        insort(self._starts, address)
        self.held[address] = self.tape.allocate(size, index), size
        self.allocations += 1
        self._live_bytes += size
        self.peak_bytes = max(self.peak_bytes, self._live_bytes)

    def free_within(self, address: int, size: int) -> None:
        """Free the allocations that reach into a range."""
        first = bisect_left(self._starts, address)
        if first and (start := self._starts[first - 1]) + self.held[start][1] > address:
            first -= 1
        end = bisect_left(self._starts, address + size)
        for start in self._starts[first:end]:
            slot, freed = self.held.pop(start)
            self.tape.free(slot)
            self._live_bytes -= freed
        del self._starts[first:end]
