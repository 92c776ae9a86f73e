"""Made-up machines whose true times are known, and what the adviser is given of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kernels.transfers.adviser import Adviser, Job, Situation, make_adviser
from kernels.transfers.cost import Timing

TrueTime = Callable[[float, float], float]
"""Seconds of `count` pieces of `size` bytes."""


def loop(size: float, count: float) -> float:
    """Either the calls or the bytes take longer."""
    return 8e-6 + count * max(1.9e-6, 0.3e-6 + size / 52e9)


def batch(size: float, count: float) -> float:
    """Small pieces cost the caller more than large ones."""
    return 10e-6 + count * (4.1e-6 if size <= 24_576 else max(1e-6, size / 55e9))


def gather(size: float, count: float) -> float:
    """A launch hides the first bytes."""
    return max(11e-6, 9e-6 + count * (size + 40) / 50e9)


def queue(size: float, count: float) -> float:
    """The GPU starts before the last piece is submitted."""
    return 9e-6 + max(min(count, 1024) * 0.4e-6, count * max(0.4e-6, 0.3e-6 + size / 52e9))


def packed(size: float, count: float) -> float:
    """A CPU thread copies all bytes before the copy engine does."""
    return 15e-6 + count * (60e-9 + size / 12e9) + count * size / 54e9


WAYS: Final[Mapping[str, TrueTime]] = {
    "pinned_loop": loop,
    "pinned_batch": batch,
    "pinned_kernel": gather,
    "pinned_graph": queue,
    "pinned_packed": packed,
}
SIZES: Final = (*(512 * 2**k for k in range(9)), 20_480, 24_576, 25_600, 28_672)
COUNTS: Final = (16, 256, 4096, 32_768)
FEW_CELLS: Final = (
    *((4096, 1024), (512, 16), (24_576, 256), (65_536, 64), (512, 8192), (28_672, 16)),
    *((16_384, 256), (4096, 16), (28_672, 256), (262_144, 16), (1_048_576, 1), (4096, 8192)),
)


def timings(
    seconds: TrueTime, cells: Sequence[tuple[int, int]], noise: float, seed: int = 0
) -> list[Timing]:
    """Times of a way in some cells, each with another relative error."""
    rng = random.Random(seed)
    return [
        Timing(size, count, seconds(size, count) * math.exp(rng.gauss(0, noise)))
        for size, count in cells
    ]


def grid() -> list[tuple[int, int]]:
    return [(size, count) for size in SIZES for count in COUNTS]


def adviser(
    cells: Sequence[tuple[int, int]], noise: float = 0.02, ways: Mapping[str, TrueTime] = WAYS
) -> Adviser:
    """An adviser that knows times of `ways` for scattered pieces to the device."""
    known = {
        (Situation(name, "h2d", "scattered", "scattered", False, 1), "host_time"): timings(
            seconds, cells, noise, seed
        )
        for seed, (name, seconds) in enumerate(ways.items())
    }
    return make_adviser("box", "calibration", known, dict.fromkeys(ways, "A way"))


def jobs(seed: int, number: int = 400) -> list[Job]:
    """Jobs off the grid, uniform in the logarithms of size and count."""
    rng = random.Random(seed)
    return [
        Job(int(2 ** rng.uniform(9, 17)), int(2 ** rng.uniform(4, 16.6))) for _ in range(number)
    ]
