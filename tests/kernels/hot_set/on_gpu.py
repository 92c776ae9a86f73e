"""Steps of the variants on a GPU, each compared with the reference."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.measure.memory import synchronize
from analysis.study import Variant
from analysis.toolchain.modules import load_python
from kernels.common.large_pool import LargePool
from kernels.hot_set.traces import Shape, draw_places, draw_trace
from tests.repository import STUDIES

HOT_SET = STUDIES["hot_set"]
WORKLOADS = load_python(HOT_SET, "workload")
VARIANTS = [variant for variant in HOT_SET.variants if variant.on_gpu]

POOL_MIB = 640
"""Beyond the reach of the TLB: from a smaller pool, the SMs of `met_on_request` read all rows."""

GRAPH_LAYERS = 3
"""Layers of a graph: with one, no layer starts before the previous one has ended."""

EQUAL_SHARE = 16
"""Share of misses in place, in 32nds, with which both the SMs and the CPU have rows."""


@dataclass(frozen=True)
class Setting:
    """A trace of `shape`, and the first `pool_mib` of the pool. The variant chooses the share of
    misses in place unless `share_32nds` gives it."""

    trace: str
    shape: Shape
    pool_mib: int = POOL_MIB
    share_32nds: int = WORKLOADS.CHOSEN


@contextmanager
def pinned_pool() -> Iterator[np.ndarray]:
    """Pinned memory uint8 [POOL_MIB MiB] of random content."""
    with closing(LargePool(POOL_MIB * 2**20, np.random.default_rng(0))) as pool:
        try:
            yield pool.bytes
        finally:
            WORKLOADS._SHARED.use(None)  # the threads of the latest variant read the pool


def layers_of(variant: Variant) -> int:
    """GRAPH_LAYERS if the study measures graphs of the variant, else 1."""
    return GRAPH_LAYERS if any("layers" in case.values for case in variant.cases) else 1


def bound(variant: Variant, module: Any, pool: np.ndarray, setting: Setting) -> Any:
    """The variant after the warm-up of the trace; `pool` is pinned memory uint8 [bytes]."""
    rng = np.random.default_rng(0)
    row_bytes = variant.constants["token_bytes"]
    pool_rows = setting.pool_mib * 2**20 // row_bytes
    rows = pool[: pool_rows * row_bytes].reshape(pool_rows, row_bytes)
    shape, layers = setting.shape, layers_of(variant)
    places = draw_places(layers * shape.requests, shape.context_rows, pool_rows, "scattered", rng)
    inputs = WORKLOADS.Inputs(
        shape,
        draw_trace(setting.trace, shape, rng),
        places.reshape(layers, shape.requests, shape.context_rows),
        rows,
        beside=None,
        share_32nds=setting.share_32nds,
    )
    return inputs.bind(variant, module)


def first_difference(operation: Any, stream: int, steps: int) -> str | None:
    """The first step whose slots, resident rows, last uses or bytes differ from the reference's.

    Of two rows with the same last use, the id decides which is evicted first, so the last uses are
    the order of use.
    """
    for number in range(steps):
        operation.poison()
        operation.launch(stream)
        synchronize(stream)
        if wrong := operation.check():
            return f"step {number}: {wrong}"
    return None
