"""Only a GPU can show that kernels keep the state of a hot set right over many steps."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from analysis.study import Variant
from analysis.toolchain.modules import load_python
from kernels.common.large_pool import LargePool
from kernels.hot_set.traces import Shape, draw_places, draw_trace
from tests.compiled import gpu_module
from tests.conformance.binding import outcome
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

STUDY = STUDIES["hot_set"]
WORKLOADS = load_python(STUDY, "workload")
STEPS = 200
POOL_MIB = 640
"""Beyond the reach of the TLB: from a smaller pool, the SMs of `met_on_request` read all rows."""
SMALL = Shape(requests=3, topk=96, slots=160, context_rows=1024, steps=STEPS)
MANY = replace(SMALL, requests=50)
USUAL = Shape(requests=1, topk=2048, slots=4096, context_rows=131072, steps=STEPS)
TRACES = ("kept_0.5", "kept_0.98", "all_new", "all_same", "one_more", "twice", "kept_0.9")
OURS = [one for one in STUDY.variants if one.on_gpu and not one.packages]


@pytest.fixture(scope="module")
def pool() -> Iterator[np.ndarray]:
    with closing(LargePool(POOL_MIB * 2**20, np.random.default_rng(0))) as made:
        yield made.bytes
        WORKLOADS._SHARED.use(None)  # the threads of the latest variant read the pool


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("variant", OURS, ids=lambda variant: variant.name)
def test_every_step_is_right(variant: Variant, trace: str, pool: np.ndarray, stream: int) -> None:
    """All steps of a trace; of three layers if the study measures graphs of the variant."""
    if "torch" in variant.needs:
        pytest.importorskip("torch")
    row_bytes = variant.constants["token_bytes"]
    layers = 3 if any("layers" in case.values for case in variant.cases) else 1
    # Shares of misses in place, in 32nds: with 16, both the SMs and the CPU have rows. Without a
    # thread that packs, few requests leave the fetch to a second kernel, many fetch themselves.
    sizes = [(SMALL, 16)] if trace != TRACES[-1] else [(USUAL, WORKLOADS.CHOSEN)]
    if variant.name == "both_on_request" and trace == TRACES[0]:
        sizes += [(MANY, WORKLOADS.CHOSEN), (SMALL, 0)]
    for shape, share_32nds in sizes:
        rng = np.random.default_rng(0)
        rows = pool[: len(pool) // row_bytes * row_bytes].reshape(-1, row_bytes)
        requests = layers * shape.requests
        places = draw_places(requests, shape.context_rows, len(rows), "scattered", rng)
        places = places.reshape(layers, shape.requests, -1)
        drawn = draw_trace(trace, shape, rng)
        inputs = WORKLOADS.Inputs(shape, drawn, places, rows, None, share_32nds)
        operation = inputs.bind(variant, gpu_module(STUDY, variant.name))
        for number in range(STEPS):
            assert outcome(operation, stream) is None, f"step {number}"
