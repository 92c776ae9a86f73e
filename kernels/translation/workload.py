"""Pools, the order of addresses in them, and the check of the bytes read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.api.measure import PythonOperation
from analysis.api.memory import DeviceArray
from analysis.api.study import Case, FieldError, Variant, require_known
from kernels.common.arrays import pinned
from kernels.common.outputs import POISON, wrong_byte

from .pools import Pools
from .reading import LINE, gather, line_words

VECTOR = 16
UNIT = 64 * 1024
"""Bytes per address. Each pass over the addresses reads another 128-byte line of them."""
MIN_DRAWN_ROWS = 2**19
"""Minimum number of rows in the sets that timed launches cycle through. Before a set comes again,
the TLB has evicted its translations. The check reads another set, because it leaves that one in the
CPU's caches."""
MIN_DRAWS = 2
PIECES = 16
"""Number of pieces of the copy engine. Submitting more would take longer than copying them."""
GUARD = 4096
"""Bytes after the destination that must not change."""

Numbers = npt.NDArray[np.int32]


class Walk:
    """The reads of one case, as described by `struct Walk` in operation.h.

    `places` is int32 [count]. `restarts` are the numbers of the reads at which launches begin: the
    first is for the check, timed launches cycle through the others. All sizes are in bytes.
    """

    def __init__(self, case: Case, rng: np.random.Generator) -> None:
        """FieldError for an invalid size or order."""
        require_known(f"case {case.id}: order", str(case["order"]), ("random", "ascending"))
        self._case = case
        self.is_of_rows = "row_bytes" in case.values
        if self.is_of_rows:
            self.reads = self._at_least("rows", 1)
            self.stride = self.read_bytes = self._at_least("row_bytes", VECTOR)
            self.extent = self._at_least("pool_mib", 1) * 2**20
            self.span = 1
            draws = 1 + max(MIN_DRAWS, MIN_DRAWN_ROWS // self.reads)
            self.places = self._drawn(draws, rng)
            self.restarts = [draw * self.reads for draw in range(draws)]
        else:
            self.reads = self._at_least("reads", 1)
            self.stride = self._at_least("stride_kib", 1) * 1024
            count = self._at_least("count", 1)
            self.extent = count * self.stride
            self.span = min(self.stride, UNIT) // LINE
            # A whole line, or one vector of it.
            self.read_bytes = case.payload_bytes // self.reads
            whole = count * self.span
            if whole + self.reads >= 2**32:  # so that the kernels can count them
                raise FieldError(f"case {case.id}: count", "fewer than 2^32 lines", whole)
            in_order = np.arange(count, dtype=np.int32)
            is_random = case["order"] == "random"
            self.places = rng.permutation(in_order) if is_random else in_order
            launches = max(1, whole // self.reads)
            self.restarts = [launch * self.reads % whole for launch in range(launches)]
        if self.read_bytes % VECTOR:
            expected = f"a multiple of {VECTOR} B in each read"
            raise FieldError(f"case {case.id}", expected, self.read_bytes)

    def _at_least(self, key: str, least: int) -> int:
        value = self._case.number(key)
        if not least <= value < 2**31:
            raise FieldError(f"case {self._case.id}: {key}", f"{least} to 2^31", value)
        return value

    def _drawn(self, count: int, rng: np.random.Generator) -> Numbers:
        """`count` draws in a row, each of `reads` distinct rows of the pool."""
        slots = self.extent // self.stride
        if not self.reads <= slots < 2**31:
            raise FieldError(f"case {self._case.id}: rows", f"at most {slots}", self.reads)
        draws = [distinct(slots, self.reads, rng) for _ in range(count)]
        if self._case["order"] == "ascending":
            for rows in draws:
                rows.sort()
        return np.concatenate(draws)

    def checked(self) -> npt.NDArray[np.int64]:
        """Numbers of the pool's rows or lines that the check's launch reads, [reads]."""
        if self.is_of_rows:
            return self.places[: self.reads].astype(np.int64)
        numbers, count = np.arange(self.reads), len(self.places)
        places = self.places[numbers % count].astype(np.int64)
        return places * (self.stride // LINE) + numbers // count % self.span


def distinct(slots: int, count: int, rng: np.random.Generator) -> Numbers:
    """`count` distinct numbers below `slots` in random order, int32 [count]."""
    if slots <= 4 * count:
        return rng.permutation(np.arange(slots, dtype=np.int32))[:count]
    # A quarter more than needed: with over 4 * count slots, fewer than a sixth are repeats.
    found = np.sort(rng.integers(0, slots, count + count // 4 + 16, np.int32))
    found = found[np.diff(found, prepend=-1) > 0]
    rng.shuffle(found)
    return found[:count] if len(found) >= count else distinct(slots, count, rng)


class Workload:
    """Pools of every kind of memory, kept for the whole process. Addresses and reference are those
    of one case at a time."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._rng = rng
        self._pools = Pools(constants, rng)
        self._largest = constants["largest_bytes"]
        # Reused between cases, because the first access to new pages dominates the set-up.
        self._landed = pinned((self._largest + GUARD,), np.uint8)
        self._reference = np.empty(self._largest, np.uint8)

    def prepare(self, case: Case) -> Inputs:
        """Skip if this machine has no pool of the case's kind and size."""
        if case.payload_bytes > self._largest:
            raise FieldError(f"case {case.id}", f"at most {self._largest} B", case.payload_bytes)
        walk = Walk(case, self._rng)
        pool = self._pools.of(str(case.values.get("memory", "registered_huge")), walk.extent)
        return Inputs(walk, pool, self._landed, self._reference)


class Inputs:
    """The addresses of one case, and the expected result of reading them."""

    def __init__(self, walk: Walk, pool: Any, landed: np.ndarray, reference: np.ndarray) -> None:
        """`landed` and `reference`, uint8, are large enough for the bytes read."""
        self._walk, self._pool = walk, pool
        self._landed, self._reference = landed, reference
        self._places = DeviceArray(walk.places.shape, np.int32, "places")
        self._places.put(walk.places)
        self._expected: np.ndarray | None = None

    def bind(self, variant: Variant, module: Any) -> Bound:
        walk, expected = self._walk, self._read_by_cpu()
        vectors = walk.stride // VECTOR, walk.read_bytes // VECTOR
        if variant.role == "ceiling":  # it moves the same number of contiguous bytes
            return self._bind_ceiling(module)
        dst = DeviceArray((expected.nbytes + GUARD,), np.uint8, "dst")
        launch = partial(
            module.launch,
            *(self._pool.pointer, self._places.pointer, dst.pointer),
            *(vectors[0], len(walk.places), walk.span, walk.reads, vectors[1]),
        )
        return Bound(launch, walk.restarts, dst, self._landed, expected)

    def _bind_ceiling(self, module: Any) -> Bound:
        walk = self._walk
        piece = walk.reads * walk.read_bytes // PIECES // VECTOR * VECTOR
        apart = (walk.extent - piece) // (PIECES - 1) // VECTOR * VECTOR
        if apart < 1:
            raise FieldError("pool_mib", f"room for pieces of {piece} B", walk.extent)
        dst = DeviceArray((PIECES * piece + GUARD,), np.uint8, "dst")
        pieces = [self._pool.bytes[i * apart :][:piece] for i in range(PIECES)]
        launch = partial(
            module.launch,
            *(self._pool.pointer, 0, dst.pointer),
            *(apart // VECTOR, PIECES, 1, PIECES, piece // VECTOR),
        )
        return Bound(launch, [0], dst, self._landed, np.concatenate(pieces))

    def _read_by_cpu(self) -> np.ndarray:
        """The expected result of the check's launch: the rows, or one word per line."""
        if self._expected is None:
            walk = self._walk
            if walk.is_of_rows:
                self._expected = self._reference[: walk.reads * walk.read_bytes]
                gather(self._pool.bytes, walk.read_bytes, walk.checked(), self._expected)
            else:
                self._expected = line_words(self._pool.bytes, walk.checked(), walk.read_bytes)
        return self._expected


@dataclass
class Bound(PythonOperation):
    """One variant bound to one case. Every launch continues where the previous one ended, so timed
    launches do not read the lines that the check has left in caches."""

    walk: Any
    restarts: list[int]
    dst: DeviceArray
    landed: np.ndarray
    expected: np.ndarray
    launched: int = 0

    def launch(self, stream: int) -> None:
        later = self.restarts[1:] or self.restarts  # the first one is the check's
        turn = self.launched - 1
        self.walk(later[turn % len(later)] if self.launched else self.restarts[0], stream)
        self.launched += 1

    def poison(self) -> None:
        self.dst.fill(POISON)
        self.launched = 0

    def check(self) -> str | None:
        """None if the bytes read are those of the pool and the guard after them is unchanged."""
        return wrong_byte(self.dst.get(self.landed[: self.dst.nbytes]), self.expected)
