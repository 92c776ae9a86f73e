"""Requests to PyTorch's allocator, from a file of torch.cuda.memory._dump_snapshot.

The file may come from any version of PyTorch and from anyone: it is read without running code that
it names.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
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
    """The requests to a `device`: number of the allocation, from 0 on; its bytes, or None for its
    free; and its stream.

    The first `live` are allocations from before the recording. `left_out` counts events of other
    kinds.
    """

    device: int
    live: int
    requests: list[tuple[int, int | None, int]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def allocations(self) -> int:
        return sum(size is not None for _, size, _ in self.requests)

    @property
    def peak_bytes(self) -> int:
        """The largest sum of requested bytes that are live at a time."""
        live: dict[int, int] = {}
        peak = total = 0
        for number, size, _ in self.requests:
            total += live.setdefault(number, size) if size is not None else -live.pop(number)
            peak = max(peak, total)
        return peak

    def pattern(self) -> Pattern:
        """The requests as a tape. Allocations that outlive it are freed at its end."""
        tape, slots, streams = Recorder(), dict[int, int](), {0: 0}
        for number, size, stream in self.requests:
            if size is None:
                tape.free(slots.pop(number))
            else:
                index = streams.setdefault(stream, len(streams))
                slots[number] = tape.allocate(size, index)
        return Pattern([tape.tape()], streams=len(streams))


def read_snapshot(path: Path) -> list[Recording]:
    """The recordings of all devices that have requests; HotpathError if there is none."""
    snapshot, recordings = _snapshot(path), []
    for device, events in enumerate(snapshot.device_traces):
        where = f"{path}: device_traces.{device}"
        segments = [segment for segment in snapshot.segments if segment.device == device]
        recording = _recording(device, _live_at_start(segments, events), events, where)
        streams = len({0, *(stream for _, _, stream in recording.requests)})
        if streams > MAX_STREAMS:
            raise FieldError(where, f"at most {MAX_STREAMS} streams", streams)
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
    found, heap = Recording(device, len(live)), _Heap()
    for address, (size, stream) in live.items():
        found.requests.append((heap.add(address, size), size, stream))
    completes: set[int] = set()  # addresses whose free was requested
    for place, event in enumerate(events):
        if not isinstance(event, Request):
            if event.action not in DECIDED:
                found.left_out[visible(event.action)] += 1
        elif event.action == "alloc":
            freed = heap.remove_within(event.addr, max(event.size, 1))
            found.requests += ((number, None, 0) for number in freed)
            completes.discard(event.addr)
            found.requests.append((heap.add(event.addr, event.size), event.size, event.stream))
        elif event.action == "free_completed" and event.addr in completes:
            completes.remove(event.addr)
        elif event.addr not in heap.held:
            expected = f"a live allocation to free at {event.addr:#x}"
            raise FieldError(f"{where}.{place}", expected, "none")
        else:
            found.requests += ((number, None, 0) for number in heap.remove_within(event.addr, 1))
            if event.action == "free_requested":
                completes.add(event.addr)
    return found


class _Heap:
    """The live allocations by address, each `held` with a number and its size."""

    def __init__(self) -> None:
        self.held: dict[int, tuple[int, int]] = {}
        self._starts: list[int] = []
        self._count = 0

    def add(self, address: int, size: int) -> int:
        """The number of a new allocation."""
        number, self._count = self._count, self._count + 1
        insort(self._starts, address)
        self.held[address] = number, size
        return number

    def remove_within(self, address: int, size: int) -> list[int]:
        """The numbers of the allocations that reach into a range, which are gone."""
        first = bisect_left(self._starts, address)
        if first and (start := self._starts[first - 1]) + self.held[start][1] > address:
            first -= 1
        end = bisect_left(self._starts, address + size)
        numbers = [self.held.pop(start)[0] for start in self._starts[first:end]]
        del self._starts[first:end]
        return numbers
