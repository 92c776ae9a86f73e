"""Patterns whose sizes rarely recur, so that free blocks fit few requests.

They are tapes like those of the allocator study, with fixed seeds. Sizes are in B; sizes of models
are rounded, since only their order matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from allocator.lib.patterns import ALLOCATE, FREE, KIB, MIB, Pattern, Recorder, threads

GIB: Final = 2**30

HIDDEN_BYTES: Final = 8 * KIB
"""Hidden state of one token: 4,096 values of 2 B."""


@dataclass(frozen=True)
class HostAhead(Pattern):
    """A pattern in which the host runs ahead of the GPU. Each replay has to begin with an idle GPU;
    otherwise it would wait for work of the previous one."""


@dataclass(frozen=True)
class Limited(Pattern):
    """A pattern during which at most `limit` B may be reserved, so that an allocator has to return
    cached memory for other requests."""

    limit: int = 0


def recomputed_lengths(tape: Recorder) -> None:
    """Training on sequences of any length up to 8,192, with activations recomputed.

    The forward pass keeps the input of each of 16 layers. The backward pass allocates the
    activations of a layer again, up to six times as wide, and frees them with the layer's input.
    """
    rng = np.random.default_rng(11)
    for tokens in rng.integers(256, 8193, 12):
        state = int(tokens) * HIDDEN_BYTES
        kept: list[int] = []
        for _ in range(16):
            kept.append(tape.allocate(state))
            for slot in [tape.allocate(state * width) for width in (3, 1, 4)]:
                tape.free(slot)
        gradient = tape.allocate(state)
        while kept:
            inside = [tape.allocate(state * width) for width in (3, 1, 4, 6)]
            before, gradient = gradient, tape.allocate(state)
            for slot in (*reversed(inside), before, kept.pop()):
                tape.free(slot)
        tape.free(gradient)


def growing_batch(tape: Recorder) -> None:
    """64 steps with a batch that grows by one item each: eight activations of 256 KiB per item."""
    for batch in range(64, 128):
        held = [tape.allocate(batch * 256 * KIB) for _ in range(8)]
        for slot in reversed(held):
            tape.free(slot)


def concatenated_cache(tape: Recorder) -> None:
    """A KV cache that is concatenated with each new token: 48 tensors of 64 KiB per token, each
    copied into a tensor one token longer, from 128 to 192 tokens."""
    held = [tape.allocate(128 * 64 * KIB) for _ in range(48)]
    for tokens in range(129, 193):
        for i, old in enumerate(held):
            held[i] = tape.allocate(tokens * 64 * KIB)
            tape.free(old)


def mixture_of_experts(tape: Recorder) -> None:
    """8,192 tokens are distributed unevenly over 16 experts, differently in each layer. Inputs of
    the experts and their hidden states, four times as wide, are kept until the backward pass."""
    rng = np.random.default_rng(12)
    for _ in range(4):
        kept: list[list[int]] = []
        for _ in range(8):
            layer: list[int] = []
            for tokens in rng.multinomial(8192, rng.dirichlet([1.0] * 16)):
                state = max(int(tokens), 1) * HIDDEN_BYTES
                layer += [tape.allocate(state), tape.allocate(state * 4)]
                tape.free(tape.allocate(state))
            kept.append(layer)
        while kept:
            for slot in reversed(kept.pop()):
                tape.free(slot)


def gathered_shards(tape: Recorder) -> None:
    """Sharded parameters: a separate stream gathers those of the next layer while a layer computes;
    they are freed after use. The backward pass gathers them again and reduces gradients of the same
    size. Activations have three lengths."""
    rng = np.random.default_rng(13)
    layers = [int(mib) * MIB + 512 * KIB for mib in rng.integers(180, 420, 12)]
    for length in (4096, 2731, 3517):
        activations: list[int] = []
        for backward in (False, True):
            order = layers[::-1] if backward else layers
            ahead = tape.allocate(order[0], stream=1)
            for i, size in enumerate(order):
                full, has_next = ahead, i + 1 < len(order)
                ahead = tape.allocate(order[i + 1], stream=1) if has_next else ahead
                tape.record(full, 0)
                if backward:
                    gradient = tape.allocate(size)
                    tape.record(gradient, 1)
                    tape.free(activations.pop())
                    tape.free(gradient)
                else:
                    activations.append(tape.allocate(length * HIDDEN_BYTES * 4))
                tape.free(full)


def checkpoint_copy(tape: Recorder) -> None:
    """A model of 256 tensors, about 8 GiB, is copied during training: each tensor is cloned,
    another stream uses the clone, and it is freed at once. A write represents that use; on the GPU
    it takes longer than the host needs for the next clone."""
    rng = np.random.default_rng(14)
    sizes = [int(size) for size in rng.choice([8, 12, 32, 48, 64], 256) * MIB]
    model = [tape.allocate(size) for size in sizes]
    for size in sizes:
        activation = tape.allocate(size // 2)
        clone = tape.allocate(size)
        tape.record(clone, 1)
        tape.write(clone, size, 1)
        tape.free(clone)
        tape.free(activation)
    for slot in model:
        tape.free(slot)


def jagged_tensors(tape: Recorder) -> None:
    """Batches of a recommender: 40 features with a varying number of values, and an embedding of
    256 B per value; all are kept until the end of the step."""
    rng = np.random.default_rng(15)
    scales = rng.lognormal(9.0, 1.2, 40)
    for _ in range(20):
        held = []
        for scale in scales:
            values = max(1, int(scale * rng.lognormal(0.0, 0.5)))
            held += [tape.allocate(values * 8), tape.allocate(values * 256)]
        for slot in held:
            tape.free(slot)


def one_bin(tape: Recorder) -> None:
    """Requests of 121.5 KiB, for which 512 free blocks are just large enough. 2,048 blocks of 120
    KiB, freed later, precede them in the same bin, and no larger block is free. Live blocks in
    between prevent merging; 16 pairs fill a segment."""
    sizes = [243 * 512] * 512 + [240 * 512] * 2048
    held = []
    for size in sizes:
        held.append(tape.allocate(size))
        tape.allocate(128 * KIB - size)
    for _ in range(2):
        for slot in held:
            tape.free(slot)
        held = [tape.allocate(size) for size in sizes]


def sawtooth(tape: Recorder) -> None:
    """Memory rises to 4 GiB and falls to a tenth of that, six times, each time with another maximum
    size; the blocks left of one tooth fragment the memory of the next."""
    rng = np.random.default_rng(17)
    live: list[tuple[int, int]] = []
    used = 0
    for bound in (4, 64, 16, 128, 8, 32):
        while used < 4 * GIB:
            size = int(rng.integers(1, bound * MIB + 1))
            live.append((tape.allocate(size), size))
            used += size
        while used > 4 * GIB // 10:
            slot, size = live.pop(int(rng.integers(len(live))))
            tape.free(slot)
            used -= size


def host_ahead(tape: Recorder) -> None:
    """1,000 allocations of up to 2 MiB are each used by another stream and freed at once, while
    that stream is still busy writing: ten times 1 GiB."""
    rng = np.random.default_rng(18)
    busy = tape.allocate(GIB, stream=1)
    for i, size in enumerate(rng.integers(1, 2 * MIB + 1, 1000)):
        if i % 100 == 0:
            tape.write(busy, GIB, 1)
        slot = tape.allocate(int(size))
        tape.record(slot, 1)
        tape.free(slot)


def _on(
    streams: int, *patterns: Callable[[Recorder], None], kind: type[Pattern] = Pattern
) -> dict[str, Callable[[], Pattern]]:
    """The patterns that these functions record, by name."""

    def pattern(build: Callable[[Recorder], None]) -> Pattern:
        recorder = Recorder()
        build(recorder)
        return kind([recorder.tape()], streams)

    return {build.__name__: partial(pattern, build) for build in patterns}


PATTERNS: Final[Mapping[str, Callable[[], Pattern]]] = {
    **_on(1, recomputed_lengths, growing_batch, concatenated_cache, mixture_of_experts),
    **_on(1, jagged_tensors, one_bin, sawtooth),
    **_on(2, gathered_shards),
    **_on(2, checkpoint_copy, host_ahead, kind=HostAhead),
}
"""The patterns of this study that every allocator replays, by name in a case."""

LIMITS: Final = (272, 384, 768)
"""Limits on reserved memory in MiB, for batches that hold up to 248 MiB."""


def limited_batch(limit: int) -> Limited:
    """16 steps of growing_batch, each with a batch larger by four, under a limit in MiB."""
    tape = Recorder()
    for batch in range(64, 128, 4):
        held = [tape.allocate(batch * 256 * KIB) for _ in range(8)]
        for slot in reversed(held):
            tape.free(slot)
    return Limited([tape.tape()], limit=limit * MIB)


def long_run() -> Pattern:
    """1,000,000 operations on 2,000 live allocations, of which a random one is repeatedly replaced.
    The distribution of sizes changes every 6,000 replacements."""
    slots, parts, steps = 2_000, 83, 6_000
    rng = np.random.default_rng(19)
    medians = np.repeat(np.exp(rng.uniform(np.log(16 * KIB), np.log(2 * MIB), parts)), steps)
    sizes = np.clip(medians * rng.lognormal(0.0, 0.5, parts * steps), 1, 64 * MIB)
    rows = np.zeros((2 * slots + 2 * parts * steps, 4), np.uint64)
    first, last, between = rows[:slots], rows[-slots:], rows[slots:-slots]
    first[:, 0], last[:, 0] = ALLOCATE, FREE
    between[::2, 0], between[1::2, 0] = FREE, ALLOCATE
    first[:, 1] = last[:, 1] = np.arange(slots)
    between[:, 1] = np.repeat(rng.integers(0, slots, parts * steps), 2)
    first[:, 2] = sizes[:slots]
    between[1::2, 2] = sizes
    return Pattern([rows])


ALONE: Final[Mapping[str, Callable[[], Pattern]]] = {
    **{f"limited_{limit}mib": partial(limited_batch, limit) for limit in LIMITS},
    "long_run": long_run,
}
"""Patterns that only some variants replay."""

MORE_THREADS: Final[Mapping[str, Callable[[], Pattern]]] = {
    f"threads_{count}": partial(threads, count) for count in (16, 48)
}
"""The pattern of threads of the allocator study, with more threads."""
