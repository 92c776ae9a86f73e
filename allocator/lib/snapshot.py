"""Requests to PyTorch's allocator, from a file of torch.cuda.memory._dump_snapshot.

The file may come from any version of PyTorch and from anyone: it is read without running code that
it names.
"""

from __future__ import annotations

import pickle
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from pydantic import BaseModel, Field

from analysis.api.files import read_keys
from analysis.api.study import HotpathError, visible

from .patterns import Pattern, Recorder

FREES: Final = {"free_requested", "free_completed", "free"}
"""Events of a free; the last is of tools that write one event for each."""
DECIDED: Final = {"segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot"}
"""Events that an allocator decides by itself, so that none is replayed."""
MAX_BYTES: Final = 2**48
MAX_FILE_BYTES: Final = 2**32
MAX_DEVICES: Final = 64
MAX_STREAMS: Final = 256

Address = Annotated[int, Field(ge=0, lt=2**64)]
Bytes = Annotated[int, Field(ge=0, le=MAX_BYTES)]


class SnapshotError(HotpathError):
    """A recording that cannot be replayed."""


class _Part(BaseModel, strict=True):
    """Base of the objects in a snapshot. Other keys than those named are not read."""


class Event(_Part):
    """An event of a device. What an event of another kind than a request has is not known: an `oom`
    has no `addr`, and a `size` that no GPU has."""

    action: str
    addr: Any = None
    size: Any = 0
    stream: Any = 0

    @property
    def is_request(self) -> bool:
        return self.action == "alloc" or self.action in FREES

    def require(self, place: int) -> None:
        """SnapshotError unless a request, the event at `place`, has numbers that it can have."""
        for name, limit in (("addr", 2**64), ("size", MAX_BYTES), ("stream", 2**64)):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value < limit:
                got = f"{value:#x}" if type(value) is int else type(value).__name__
                raise SnapshotError(
                    f"{place}.{name}: expected a whole number below {limit:#x}, got {got:.40}"
                )


class _Request(_Part):
    real_size: Bytes


class Block(_Part):
    """A block of a segment. Older versions of PyTorch leave out its address, and have the requested
    size in `history` or not at all."""

    state: str
    size: Bytes
    address: Address | None = None
    requested_size: Bytes | None = None
    history: list[_Request] = []

    @property
    def requested(self) -> int:
        if self.requested_size is not None:
            return self.requested_size
        return self.history[0].real_size if self.history else self.size


class Segment(_Part):
    """A segment of a device."""

    address: Address = 0
    device: int = 0
    stream: Annotated[int, Field(ge=0, lt=2**64)] = 0
    blocks: list[Block]


class Snapshot(_Part):
    """`segments` when it was taken, and the events of each device before."""

    segments: list[Segment] = []
    device_traces: Annotated[list[list[Event]], Field(max_length=MAX_DEVICES)]


class Live(NamedTuple):
    """A live allocation: requested bytes, and the handle of its stream."""

    bytes: int
    stream: int


class Request(NamedTuple):
    """An allocation, numbered from 0 on, or the free of one, which has no `bytes`."""

    allocation: int
    bytes: int | None
    stream: int = 0


@dataclass
class Recording:
    """The requests to a `device`, of which the first `live` are allocations from before the
    recording. `left_out` counts events of other kinds, `implied` the frees that only the reuse of
    their memory shows."""

    device: int = 0
    live: int = 0
    requests: list[Request] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    implied: int = 0

    @property
    def allocations(self) -> int:
        return sum(request.bytes is not None for request in self.requests)

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
        tape = Recorder()
        slots: dict[int, int] = {}
        streams = {0: 0}
        for number, size, stream in self.requests:
            if size is None:
                tape.free(slots.pop(number))
            else:
                index = streams.setdefault(stream, len(streams))
                slots[number] = tape.allocate(size, index)
        return Pattern([tape.tape()], streams=len(streams))


def read_snapshot(path: Path) -> list[Recording]:
    """The recordings of all devices that have requests; HotpathError if there is none."""
    snapshot = _snapshot(path)
    recordings = []
    for device, events in enumerate(snapshot.device_traces):
        segments = [segment for segment in snapshot.segments if segment.device == device]
        try:
            recording = record(live_at_start(segments, events), events)
        except SnapshotError as error:
            raise SnapshotError(f"{path}: device_traces.{device}.{error}") from error
        streams = {0, *(request.stream for request in recording.requests)}
        if len(streams) > MAX_STREAMS:
            raise SnapshotError(
                f"{path}: device_traces.{device}: expected at most {MAX_STREAMS} streams,"
                f" got {len(streams)}"
            )
        recording.device = device
        if recording.allocations > recording.live:
            recordings.append(recording)
    if not recordings:
        raise SnapshotError(
            f"{path}: device_traces: expected an event alloc after"
            " torch.cuda.memory._record_memory_history(), got none"
        )
    return recordings


class _Plain(pickle.Unpickler):
    """Reads plain values only: a file must not choose code to run."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it needs {module}.{name}")


def _snapshot(path: Path) -> Snapshot:
    expected = "expected a file of torch.cuda.memory._dump_snapshot"
    if not path.is_file():
        raise SnapshotError(f"{path}: {expected}, got no plain file")
    if (size := path.stat().st_size) > MAX_FILE_BYTES:
        raise SnapshotError(f"{path}: expected at most {MAX_FILE_BYTES} bytes, got {size}")
    try:
        with path.open("rb") as file:
            found = _Plain(file).load()
    except OSError as error:
        raise SnapshotError(f"{path}: cannot be read: {error.strerror}") from error
    except Exception as error:  # a damaged pickle can raise any
        reason = visible(str(error) or type(error).__name__)
        raise SnapshotError(f"{path}: {expected}, got none: {reason}") from error
    try:
        return read_keys(Snapshot, found, str(path))
    except HotpathError as error:
        raise SnapshotError(visible(str(error))) from error
    except ValueError as error:
        raise SnapshotError(
            f"{path}: expected numbers of at most 64 bits, got longer ones"
        ) from error


def live_blocks(segments: Iterable[Segment]) -> dict[int, Live]:
    """The allocations that are live in `segments`, by address."""
    found = {}
    for segment in segments:
        address = segment.address
        for block in segment.blocks:
            address = address if block.address is None else block.address
            if block.state == "active_allocated":
                found[address] = Live(block.requested, segment.stream)
            address += block.size
    return found


def live_at_start(segments: Iterable[Segment], events: Sequence[Event]) -> dict[int, Live]:
    """The allocations that were live before `events`, which `segments` follow: those that are freed
    without having been allocated, and those in `segments` that no event names."""
    named: set[int] = set()
    found: dict[int, Live] = {}
    for place, event in enumerate(events):
        if not event.is_request:
            continue
        event.require(place)
        if event.action != "alloc" and event.addr not in named:
            found[event.addr] = Live(event.size, event.stream)
        named.add(event.addr)
    found |= {a: live for a, live in live_blocks(segments).items() if a not in named}
    return dict(sorted(found.items()))


def record(live: Mapping[int, Live], events: Iterable[Event]) -> Recording:
    """The requests of `events`, after allocations `live` by address. A free counts where it was
    requested, or else where it was completed. SnapshotError for a free of nothing."""
    found = Recording(live=len(live))
    heap = _Heap()
    for address, (size, stream) in live.items():
        found.requests.append(Request(heap.add(address, size), size, stream))
    completes: set[int] = set()  # addresses whose free was requested
    for place, event in enumerate(events):
        if not event.is_request:
            if event.action not in DECIDED:
                found.left_out[visible(event.action)] += 1
        elif event.action == "alloc":
            freed = heap.remove_within(event.addr, max(event.size, 1))
            found.implied += len(freed)
            found.requests += (Request(number, None) for number in freed)
            completes.discard(event.addr)
            number = heap.add(event.addr, event.size)
            found.requests.append(Request(number, event.size, event.stream))
        elif event.action == "free_completed" and event.addr in completes:
            completes.remove(event.addr)
        else:
            found.requests.append(Request(heap.remove(event.addr, place), None))
            if event.action == "free_requested":
                completes.add(event.addr)
    return found


class _Heap:
    """The live allocations by address, each with a number."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._held: dict[int, tuple[int, int]] = {}
        self._count = 0

    def add(self, address: int, size: int) -> int:
        """The number of a new allocation."""
        number, self._count = self._count, self._count + 1
        insort(self._starts, address)
        self._held[address] = number, size
        return number

    def remove(self, address: int, place: int) -> int:
        """The number of the allocation at `address`, which the event at `place` frees."""
        if address not in self._held:
            raise SnapshotError(
                f"{place}: free of {address:#x}: expected a live allocation, got none"
            )
        del self._starts[bisect_left(self._starts, address)]
        return self._held.pop(address)[0]

    def remove_within(self, address: int, size: int) -> list[int]:
        """The numbers of the allocations that reach into a range, which are gone."""
        first = bisect_left(self._starts, address)
        if first and (start := self._starts[first - 1]) + self._held[start][1] > address:
            first -= 1
        end = bisect_left(self._starts, address + size)
        numbers = [self._held.pop(start)[0] for start in self._starts[first:end]]
        del self._starts[first:end]
        return numbers
