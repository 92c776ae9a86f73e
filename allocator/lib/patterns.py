"""The allocation patterns, as tapes for the runner in runner.h.

A pattern has one tape per thread, each an array uint64 [operations, 4] of (kind, slot, bytes,
stream). Every tape frees what it allocates, so that it can be replayed. Random draws have fixed
seeds: every round and every machine replays the same tapes.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .recorded import SHA256

ALLOCATE, FREE, RECORD, WRITE = 0, 1, 2, 3
KIB, MIB = 2**10, 2**20
ELEMENT_BYTES = 4

TRACES = Path(__file__).parent / "traces"

Tape = npt.NDArray[np.uint64]


class MissingTrace(Exception):
    """A trace that has not been recorded yet."""


@dataclass(frozen=True)
class Pattern:
    """`tapes`, one per thread, and the number of `streams` that they use. A `fresh` pattern starts
    with an empty allocator."""

    tapes: Sequence[Tape]
    streams: int = 1
    fresh: bool = False

    @property
    def repeats_exactly(self) -> bool:
        """Whether every replay holds the same memory at each point: neither other threads nor GPU
        work affect it."""
        return len(self.tapes) == 1 and not (self.tapes[0][:, 0] == WRITE).any()


class Recorder:
    """Builds a tape; free slots are reused."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int]] = []
        self._free: list[int] = []
        self._live: dict[int, None] = {}
        self._slots = 0

    def allocate(self, size: int, stream: int = 0) -> int:
        """The slot of a new allocation of `size` bytes for `stream`."""
        if self._free:
            slot = self._free.pop()
        else:
            slot, self._slots = self._slots, self._slots + 1
        self._rows.append((ALLOCATE, slot, max(int(size), 1), stream))
        self._live[slot] = None
        return slot

    def free(self, slot: int) -> None:
        self._rows.append((FREE, slot, 0, 0))
        del self._live[slot]
        self._free.append(slot)

    def record(self, slot: int, stream: int) -> None:
        """Record that `stream` also uses the allocation."""
        self._rows.append((RECORD, slot, 0, stream))

    def write(self, slot: int, size: int, stream: int) -> None:
        """Let `stream` write the first `size` bytes of the allocation."""
        self._rows.append((WRITE, slot, int(size), stream))

    def tape(self) -> Tape:
        """The tape, with frees appended for everything that is still live, the newest first."""
        for slot in reversed(list(self._live)):
            self.free(slot)
        return np.array(self._rows, np.uint64)


def _one(build: Callable[[Recorder], None], **options: Any) -> Pattern:
    recorder = Recorder()
    build(recorder)
    return Pattern([recorder.tape()], **options)


# The nine patterns of the write-up. It describes each of them; sizes and counts that it does not
# print are chosen here.

TENSORS = [elements * ELEMENT_BYTES for elements in (1000, 10_000, 100_000, 1024 * 1024)]


def same_size(tape: Recorder) -> None:
    """A training loop: the same ten tensors in every step, all freed at its end."""
    for size in TENSORS:
        for _ in range(5):
            held = [tape.allocate(size) for _ in range(10)]
            for slot in held:
                tape.free(slot)


def alloc_free_cycle(tape: Recorder) -> None:
    """A tensor created and dropped, 20 times for each size."""
    for size in TENSORS:
        for _ in range(20):
            tape.free(tape.allocate(size))


def varying_sizes(tape: Recorder) -> None:
    """Batches of any size from 1 to 64, four of them live."""
    rng = np.random.default_rng(2)
    held: list[int] = []
    for batch in rng.integers(1, 65, 100):
        held.append(tape.allocate(int(batch) * 1024 * 16 * ELEMENT_BYTES))
        if len(held) > 4:
            tape.free(held.pop(0))


def large_memory(tape: Recorder) -> None:
    """Large tensors, first one at a time and then all at once."""
    sizes = [size * MIB for size in (64, 128, 256, 512)]
    for size in sizes:
        tape.free(tape.allocate(size))
    for slot in [tape.allocate(size) for size in sizes]:
        tape.free(slot)


def cold_warm(tape: Recorder) -> None:
    """A tensor of 1024 x 1024, allocated for the first time and then ten more times."""
    for _ in range(11):
        tape.free(tape.allocate(TENSORS[-1]))


def first_allocation(tape: Recorder) -> None:
    """The first allocation of all."""
    tape.allocate(TENSORS[-1])


def dynamic_batches(tape: Recorder) -> None:
    """Inference: a request's batch size sets the size of eight activations, two live at a time."""
    rng = np.random.default_rng(5)
    for batch in rng.choice([1, 2, 4, 8, 16, 32], 25):
        size = int(batch) * 128 * 768 * ELEMENT_BYTES
        before = tape.allocate(size)
        for _ in range(8):
            after = tape.allocate(size)
            tape.free(before)
            before = after
        tape.free(before)


def transformer_training(tape: Recorder) -> None:
    """60 tensors of 4 to 320 MB, kept by the forward pass and freed by the backward pass."""
    sizes = np.geomspace(4e6, 320e6, 60)
    np.random.default_rng(6).shuffle(sizes)
    for _ in range(2):
        for slot in reversed([tape.allocate(int(size)) for size in sizes]):
            tape.free(slot)


def gradient_accumulation(tape: Recorder) -> None:
    """Four micro-batches: activations and new gradients come and go while accumulated gradients
    stay."""
    parameters = [*([768 * 768, 768 * 3072, 3072 * 768] * 12), 50257 * 768]
    gradients = [tape.allocate(count * ELEMENT_BYTES) for count in parameters]
    for batch in (8, 8, 8, 5):
        activations = [tape.allocate(batch * 512 * 768 * ELEMENT_BYTES) for _ in range(24)]
        for count in reversed(parameters):
            tape.free(tape.allocate(count * ELEMENT_BYTES))
            if activations:
                tape.free(activations.pop())
    for slot in gradients:
        tape.free(slot)


def memory_pressure(tape: Recorder) -> None:
    """4 GiB in pieces; every other one is freed, then larger and smaller ones take their place."""
    held = [tape.allocate(64 * MIB) for _ in range(64)]
    for slot in held[::2]:
        tape.free(slot)
    small = [tape.allocate(48 * MIB) for _ in range(32)]
    for slot in held[1::2]:
        tape.free(slot)
    for _ in range(8):
        tape.allocate(96 * MIB)
    for slot in small:
        tape.free(slot)


# Pairs of an allocation and a free.


def hot_pair(tape: Recorder) -> None:
    for _ in range(1000):
        tape.free(tape.allocate(4 * KIB))


def hot_large_pair(tape: Recorder) -> None:
    for _ in range(1000):
        tape.free(tape.allocate(64 * MIB))


def random_pair(tape: Recorder) -> None:
    """1000 live allocations of up to 1 MiB, of which a random one is repeatedly replaced."""
    rng = np.random.default_rng(7)
    held = [tape.allocate(size) for size in rng.integers(1, MIB + 1, 1000)]
    for size, which in zip(
        rng.integers(1, MIB + 1, 10_000), rng.integers(0, 1000, 10_000), strict=True
    ):
        tape.free(held[which])
        held[which] = tape.allocate(size)


def storage(elements: int) -> Pattern:
    """A storage of the given number of elements, created and dropped."""

    def build(tape: Recorder) -> None:
        for _ in range(100):
            tape.free(tape.allocate(elements * ELEMENT_BYTES))

    return _one(build)


def rmm_random(allocations: int, max_mib: int) -> Pattern:
    """RMM's random_allocations benchmark.

    2N steps, 73 % of which allocate up to `max_mib` MiB, as long as the total stays within 16,000
    MiB; the others free a random live block.
    """

    def build(tape: Recorder) -> None:
        rng = np.random.default_rng(1)
        live: list[tuple[int, int]] = []
        used, made = 0, 0
        for _ in range(2 * allocations):
            size = int(rng.integers(1, max_mib * MIB + 1))
            wants = made < allocations and rng.random() < 0.73
            if (wants or not live) and used + size <= 16_000 * MIB:
                live.append((tape.allocate(size), size))
                used, made = used + size, made + 1
            elif live:
                slot, freed = live.pop(int(rng.integers(len(live))))
                tape.free(slot)
                used -= freed

    return _one(build)


def streams(count: int) -> Pattern:
    """Allocations of up to 4 MiB on `count` streams in turn; another stream also uses every
    fourth."""

    def build(tape: Recorder) -> None:
        rng = np.random.default_rng(8)
        live: list[int] = []
        for i, size in enumerate(rng.integers(1, 4 * MIB + 1, 2000)):
            stream = i % count
            slot = tape.allocate(size, stream)
            if count > 1 and i % 4 == 0:
                tape.record(slot, (stream + 1) % count)
            live.append(slot)
            if len(live) > 16 * count:
                tape.free(live.pop(int(rng.integers(len(live)))))

    return _one(build, streams=count)


def streams_busy() -> Pattern:
    """Allocations of up to 1 MiB on four streams in turn, every fifth of them freed while another
    stream still writes it."""

    def build(tape: Recorder) -> None:
        rng = np.random.default_rng(10)
        live: list[int] = []
        for i, size in enumerate(rng.integers(1, MIB + 1, 2000)):
            stream = i % 4
            slot = tape.allocate(size, stream)
            if i % 5 == 0:
                other = (stream + 1) % 4
                tape.record(slot, other)
                tape.write(slot, size, other)
                tape.free(slot)
                continue
            live.append(slot)
            if len(live) > 512:
                tape.free(live.pop(int(rng.integers(len(live)))))

    return _one(build, streams=4)


def threads(count: int) -> Pattern:
    """Threads that keep 64 allocations of up to 1 MiB each, replacing one at a time."""

    def build(thread: int) -> Tape:
        rng = np.random.default_rng([9, thread])
        tape = Recorder()
        held = [tape.allocate(size) for size in rng.integers(1, MIB + 1, 64)]
        for size, which in zip(
            rng.integers(1, MIB + 1, 1000), rng.integers(0, 64, 1000), strict=True
        ):
            tape.free(held[which])
            held[which] = tape.allocate(size)
        return tape.tape()

    return Pattern([build(thread) for thread in range(count)])


def trace(name: str) -> Pattern:
    """A trace recorded from PyTorch. MissingTrace if there is none."""
    path = TRACES / f"{name}.csv.gz"
    if name not in SHA256 or not path.exists():
        raise MissingTrace(f"{path.name}: not recorded yet")
    packed = path.read_bytes()
    if (got := hashlib.sha256(packed).hexdigest()) != SHA256[name]:
        raise ValueError(f"{path.name}: expected the digest in recorded.py, got {got}")
    return Pattern([replayable(read_trace(gzip.decompress(packed).decode().splitlines()))])


def read_trace(lines: Iterator[str] | Sequence[str]) -> Iterator[tuple[str, int, int]]:
    """(action, allocation, bytes) of each line after the header, as described in
    traces/README.md."""
    rows = iter(lines)
    header = next(rows).strip()
    if header != "action,allocation,bytes":
        raise ValueError(f"trace: expected the header action,allocation,bytes, got {header!r}")
    for row in rows:
        action, allocation, size = row.strip().split(",")
        yield action, int(allocation), int(size or 0)


def replayable(rows: Iterator[tuple[str, int, int]]) -> Tape:
    """The tape of a trace; allocations that outlive it are freed at the end."""
    tape = Recorder()
    slots: dict[int, int] = {}
    for action, allocation, size in rows:
        if action == "allocate":
            slots[allocation] = tape.allocate(size)
        elif action == "free":
            tape.free(slots.pop(allocation))
        else:
            raise ValueError(f"trace: action: expected allocate or free, got {action!r}")
    return tape.tape()


PATTERNS: Final[Mapping[str, Callable[[], Pattern]]] = {
    **{
        build.__name__: lambda build=build: _one(build)  # type: ignore[misc]
        for build in (
            *(same_size, alloc_free_cycle, varying_sizes, large_memory, dynamic_batches),
            *(transformer_training, gradient_accumulation, memory_pressure),
            *(hot_pair, hot_large_pair, random_pair),
        )
    },
    "cold_warm": lambda: _one(cold_warm, fresh=True),
    "first_allocation": lambda: _one(first_allocation, fresh=True),
    **{f"storage_{n}k": lambda n=n: storage(n * 1000) for n in (1, 10, 100)},  # type: ignore[misc]
    **{
        f"rmm_{n}_{mib}mib": lambda n=n, mib=mib: rmm_random(n, mib)  # type: ignore[misc]
        for n in (1_000, 10_000, 100_000)
        for mib in (1, 4, 64, 256, 1024, 4096)
    },
    **{f"streams_{n}": lambda n=n: streams(n) for n in (1, 2, 4)},  # type: ignore[misc]
    "streams_busy": streams_busy,
    **{f"threads_{n}": lambda n=n: threads(n) for n in (1, 2, 4, 8)},  # type: ignore[misc]
    **{
        f"trace_{name}": lambda name=name: trace(name)  # type: ignore[misc]
        for name in (
            "transformer_training",
            "transformer_inference",
            "cnn_training",
            "cnn_inference",
        )
    },
}
"""Every pattern, by its name in a case."""
