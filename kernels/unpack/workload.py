"""Fragments in a bounce buffer: descriptors, their validation, and the expected destination."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from analysis.api.measure import Operation
from analysis.api.memory import DeviceArray
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import pinned
from kernels.common.outputs import POISON, first_difference, same_bytes
from kernels.common.random_bytes import random_bytes

VECTOR = 16
GUARD = 256
"""Bytes before and after the destination that must not change."""

AT_RANDOM, IN_ORDER = 1, 2
"""The order in which the fragments of a chunk arrive: `arrival` in study.yaml."""

PARTS_BUDGET_S = 0.01
MAX_PART_CALLS = 20
"""Limits of one sample of the parts: total time of its calls in seconds, and their number."""

DESCRIPTOR = np.dtype([("src_off", "<u4"), ("len", "<u4"), ("dst_off", "<u8")])


def block_type(block_descriptors: int) -> np.dtype[Any]:
    """The dtype of a descriptor block, with the layout of operator.h."""
    header = [("count", "<u4"), ("reserved", "<u4"), ("bytes", "<u8")]
    pointers = [("bounce", "<u8"), ("dst", "<u8")]
    return np.dtype([*header, *pointers, ("descriptors", DESCRIPTOR, (block_descriptors,))])


@dataclass(frozen=True)
class Plan:
    """Descriptor blocks of all chunks, their number per chunk, and the buffers' sizes in bytes.

    `blocks` has `block_type`; `dst_bytes` counts the guards at both ends.
    """

    blocks: np.ndarray
    blocks_of_chunks: tuple[int, ...]
    bounce_bytes: int
    dst_bytes: int

    @property
    def descriptors(self) -> np.ndarray:
        """The descriptors in use, DESCRIPTOR [n], in their order in the blocks."""
        used = [block["descriptors"][: block["count"]] for block in self.blocks]
        return np.concatenate(used) if used else np.empty(0, DESCRIPTOR)


def draw_chunks(case: Case, rng: np.random.Generator, arrival: int = AT_RANDOM) -> list[np.ndarray]:
    """The descriptors of every chunk of `case`, DESCRIPTOR [fragments].

    Each chunk arrives in fragments of `fragment` bytes; the last one holds the rest. The sources
    lie in slots of whole vectors, at offset `src`. The destinations are contiguous and start `dst`
    bytes after the guard. A chunk's slots are filled AT_RANDOM or IN_ORDER. FieldError for an
    impossible case.
    """
    chunks, fragment = case.number("chunks"), case.number("fragment")
    size = case.number("kib") * 1024
    for key, value in (("chunks", chunks), ("kib", size), ("fragment", fragment)):
        if value < 1:
            raise FieldError(f"case {case.id}: {key}", "at least 1", value)
    if arrival not in (AT_RANDOM, IN_ORDER):
        raise FieldError("constants.arrival", f"{AT_RANDOM} or {IN_ORDER}", arrival)
    slot = -(-fragment // VECTOR) * VECTOR
    count = -(-size // fragment)
    drawn = []
    for chunk in range(chunks):
        slots = np.arange(count) if arrival == IN_ORDER else rng.permutation(count)
        descriptors = np.zeros(count, DESCRIPTOR)
        source = (chunk * count + slots.astype(np.int64)) * slot + case.number("src")
        if int(source.max()) >= 2**32:
            raise FieldError(f"case {case.id}", "sources within 4 GiB", int(source.max()))
        descriptors["src_off"] = source
        descriptors["len"] = np.minimum(fragment, size - np.arange(count) * fragment)
        first = GUARD + case.number("dst") + chunk * size
        descriptors["dst_off"] = first + np.arange(count) * fragment
        drawn.append(descriptors)
    return drawn


def plan(chunks: Sequence[np.ndarray], block_descriptors: int) -> Plan:
    """Put the descriptors of each chunk into as many blocks as needed, and size the buffers."""
    blocks_of_chunks = tuple(-(-len(chunk) // block_descriptors) for chunk in chunks)
    blocks = np.zeros(sum(blocks_of_chunks), block_type(block_descriptors))
    number = 0
    for chunk in chunks:
        for start in range(0, len(chunk), block_descriptors):
            part = chunk[start : start + block_descriptors]
            blocks[number]["count"] = len(part)
            blocks[number]["bytes"] = part["len"].sum(dtype=np.uint64)
            blocks[number]["descriptors"][: len(part)] = part
            number += 1
    every = np.concatenate([*chunks, np.empty(0, DESCRIPTOR)])
    source_end = int((every["src_off"].astype(np.uint64) + every["len"]).max(initial=0))
    destination_end = int((every["dst_off"] + every["len"]).max(initial=0))
    bounce_bytes = -(-source_end // VECTOR) * VECTOR
    return Plan(blocks, blocks_of_chunks, bounce_bytes, destination_end + GUARD)


def require_valid(plan: Plan, longest_fragment: int) -> None:
    """FieldError for the first invalid block or descriptor.

    A block's counts must match its descriptors. A descriptor must have 1 to `longest_fragment`
    bytes, lie within both buffers, and not overlap the destination of another one.
    """
    if sum(plan.blocks_of_chunks) != len(plan.blocks):
        raise FieldError("blocks_of_chunks", f"{len(plan.blocks)} in all", plan.blocks_of_chunks)
    room = plan.blocks["descriptors"].shape[1]
    for number, block in enumerate(plan.blocks):
        where = f"blocks[{number}]"
        count = int(block["count"])
        if not 1 <= count <= room:
            raise FieldError(f"{where}.count", f"1 to {room}", count)
        _require_inside(block["descriptors"][:count], plan, longest_fragment, where)
        counted = int(block["descriptors"]["len"][:count].sum(dtype=np.uint64))
        if int(block["bytes"]) != counted:
            expected = f"the sum of all lengths, {counted}"
            raise FieldError(f"{where}.bytes", expected, int(block["bytes"]))
    _require_no_overlap(plan)


def _require_inside(own: np.ndarray, plan: Plan, longest: int, where: str) -> None:
    length, source = own["len"].astype(np.uint64), own["src_off"].astype(np.uint64)
    # Subtracted instead of added, because a sum could overflow for a very large destination.
    room = np.uint64(plan.dst_bytes) - np.minimum(length, np.uint64(plan.dst_bytes))
    faults: tuple[tuple[np.ndarray, str, str], ...] = (
        ((length < 1) | (length > longest), "len", f"1 to {longest}"),
        (source + length > plan.bounce_bytes, "src_off", f"an end within {plan.bounce_bytes}"),
        (
            (own["dst_off"] > room) | (length > plan.dst_bytes),
            "dst_off",
            f"an end within {plan.dst_bytes}",
        ),
    )
    first = min((int(np.argmax(bad)) for bad, _, _ in faults if bad.any()), default=None)
    if first is None:
        return
    field, expected = next((field, text) for bad, field, text in faults if bad[first])
    got = int(own[first][field])
    if field != "len":
        got += int(own[first]["len"])
    raise FieldError(f"{where}.descriptors[{first}].{field}", expected, got)


def _require_no_overlap(plan: Plan) -> None:
    every = plan.descriptors
    starts, ends = every["dst_off"], every["dst_off"] + every["len"]
    order = np.argsort(starts, kind="stable")
    if not (starts[order][1:] < ends[order][:-1]).any():
        return
    for index in range(1, len(every)):
        before = (starts[:index] < ends[index]) & (starts[index] < ends[:index])
        if before.any():
            block, position = _position(plan, index)
            other_block, other_position = _position(plan, int(np.argmax(before)))
            raise FieldError(
                f"blocks[{block}].descriptors[{position}].dst_off",
                f"bytes that blocks[{other_block}].descriptors[{other_position}] does not write",
                int(starts[index]),
            )


def _position(plan: Plan, index: int) -> tuple[int, int]:
    """The block, and the index within it, of a descriptor given by its index over all blocks."""
    first_after = np.cumsum(plan.blocks["count"], dtype=np.int64)
    block = int(np.searchsorted(first_after, index, side="right"))
    return block, index - (int(first_after[block - 1]) if block else 0)


def in_order(plan: Plan) -> Plan:
    """The same chunks with contiguous bytes, which a plain copy can move."""
    blocks = plan.blocks.copy()
    first = plan.descriptors[np.argmin(plan.descriptors["dst_off"])]
    start = int(plan.descriptors["src_off"].min())
    for block in blocks:
        used = block["descriptors"][: block["count"]]
        used["src_off"] = start + (used["dst_off"] - first["dst_off"])
    return Plan(blocks, plan.blocks_of_chunks, plan.bounce_bytes, plan.dst_bytes)


def place(source: np.ndarray, plan: Plan, out: np.ndarray) -> None:
    """Fill `out` [dst_bytes] with the expected result of unpacking: poison outside the
    fragments."""
    out.fill(POISON)
    for src_off, size, dst_off in plan.descriptors.tolist():
        out[dst_off : dst_off + size] = source[src_off : src_off + size]


class Buffers:
    """A bounce buffer with random bytes, a destination, and host memory to check it. They never
    shrink, because the first access to new memory dominates the set-up."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.source = np.empty(0, np.uint8)
        self.landed = np.empty(0, np.uint8)
        self.expected = np.empty((2, 0), np.uint8)
        self.bounce: DeviceArray | None = None
        self.dst: DeviceArray | None = None

    def fit(self, bounce_bytes: int, dst_bytes: int) -> None:
        """Grow the buffers as needed; the contents of the bounce buffer change if it grows."""
        if self.bounce is None or self.bounce.nbytes < bounce_bytes:
            self.bounce = None  # free the smaller one first
            self.bounce = DeviceArray((bounce_bytes,), np.uint8, "bounce")
            self.source = random_bytes(bounce_bytes, self._rng)
            self.bounce.put(self.source)
        if self.dst is None or self.dst.nbytes < dst_bytes:
            self.dst = None
            self.dst = DeviceArray((dst_bytes,), np.uint8, "dst")
            self.landed = pinned((dst_bytes,), np.uint8)
            self.expected = np.empty((2, dst_bytes), np.uint8)


class Workload:
    """The descriptors of each case, and the destination expected after unpacking."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._room = constants["block_descriptors"]
        self._longest = constants["longest_fragment"]
        self._arrival = constants["arrival"]
        self._rng = rng
        self._buffers = Buffers(rng)
        self._scattered: Receive | None = None
        self._contiguous: Receive | None = None
        self._held_s = Operation.held_s

    def prepare(self, case: Case) -> None:
        self.prepare_chunks(draw_chunks(case, self._rng, self._arrival))
        if "held_us" in case.values:
            held = case.number("held_us") * 1e-6
            self._held_s = held, held
        else:
            self._held_s = Operation.held_s

    def prepare_chunks(self, chunks: Sequence[np.ndarray]) -> None:
        """Like `prepare`, for given descriptors; FieldError if one of them is invalid."""
        scattered = plan(chunks, self._room)
        require_valid(scattered, self._longest)
        self._buffers.fit(scattered.bounce_bytes, scattered.dst_bytes)
        self._scattered = Receive(scattered, self._buffers, self._buffers.expected[0])
        self._contiguous = None

    def bind(self, variant: Variant, module: Any) -> Bound:
        """Bind a ceiling to the same number of contiguous bytes, for a plain copy, and any other
        variant to the scattered fragments."""
        assert self._scattered is not None, "prepare comes first"
        receive = self._scattered
        if variant.role == "ceiling":
            if self._contiguous is None:
                ordered = in_order(receive.plan)
                self._contiguous = Receive(ordered, self._buffers, self._buffers.expected[1])
            receive = self._contiguous
        bound = receive.bind(module, variant.role)
        bound.held_s = self._held_s
        return bound


class Receive:
    """One plan in its buffers, with the expected destination."""

    def __init__(self, plan: Plan, buffers: Buffers, expected: np.ndarray) -> None:
        self.plan = plan
        self._buffers = buffers
        self.expected = expected[: plan.dst_bytes]
        place(buffers.source, plan, self.expected)

    def bind(self, module: Any, role: str) -> Bound:
        bounce, dst = self._buffers.bounce, self._buffers.dst
        assert bounce is not None and dst is not None
        blocks = self.plan.blocks
        blocks["bounce"], blocks["dst"] = bounce.pointer, dst.pointer
        bound = module.bind(
            blocks.view(np.uint8).reshape(-1),
            self.plan.blocks_of_chunks,
            *(bounce.pointer, self.plan.bounce_bytes),
            *(dst.pointer, self.plan.dst_bytes),
        )
        return Bound(bound, dst, self._buffers.landed, self.expected, role)


class Bound(Operation):
    """One variant bound to one receive; its `role` decides on its samples besides times."""

    def __init__(
        self,
        bound: Any,
        dst: DeviceArray,
        landed: np.ndarray,
        expected: np.ndarray,
        role: str,
    ) -> None:
        self._bound = bound
        self._dst = dst
        self._landed = landed
        self._expected = expected
        self._role = role
        self._wrong_bytes = 0
        self.launcher = bound
        self.waits = bound.waits()
        if bound.must_get_ready():
            self.reset = lambda _: bound.get_ready()

    def poison(self) -> None:
        self._dst.fill(POISON)

    def check(self) -> str | None:
        """None if the destination and its guards hold the expected bytes, else the difference."""
        landed = self._dst.get(self._landed)[: len(self._expected)]
        if same_bytes(landed, self._expected):
            self._wrong_bytes = 0
            return None
        self._wrong_bytes = int(np.count_nonzero(landed != self._expected))
        byte = first_difference(landed, self._expected)
        return (
            f"destination byte {byte}: expected {self._expected[byte]}, got {landed[byte]};"
            f" {self._wrong_bytes} of {len(landed)} bytes are wrong"
        )

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """One sample each: wrong_bytes of steps, and seconds of the parts of a call.

        Beyond the steps, only calls that wait are split into parts; for others, submit_time
        suffices.
        """
        del count
        samples: dict[str, list[float]] = {}
        if self._role == "step":
            samples["wrong_bytes"] = [self._wrong_bytes]
        if self._role == "step" or (self._role == "beyond" and self.waits):
            samples |= part_samples(lambda: self._bound.parts(stream))
        return samples


def part_samples(parts: Callable[[], Mapping[str, float]]) -> dict[str, list[float]]:
    """One sample of each part: the median of several calls after the first one, or the first call
    where calls are long."""
    first = parts()
    times = min(MAX_PART_CALLS, int(PARTS_BUDGET_S / max(sum(first.values()), 1e-9)))
    calls = [parts() for _ in range(times)] or [first]
    return {name: [median(call[name] for call in calls)] for name in first}
