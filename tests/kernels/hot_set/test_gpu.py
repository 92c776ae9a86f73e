"""Only a GPU can show that kernels keep the state of a hot set right over many steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.study import Variant
from analysis.toolchain.modules import load_python
from analysis.toolchain.peers import unusable
from kernels.common.large_pool import LargePool
from kernels.hot_set.traces import Shape, draw_places, draw_trace
from tests.compiled import gpu_module, study_with_fault
from tests.conformance.binding import bound, outcome
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

STUDY = STUDIES["hot_set"]
WORKLOADS = load_python(STUDY, "workload")
VARIANTS = [one for one in STUDY.variants if one.on_gpu and not one.packages]
SHIPPED = [one for one in STUDY.variants if one.packages]
STEPS = 200
POOL_MIB = 640
"""Beyond the reach of the TLB: from a smaller pool, the SMs of `met_on_request` read all rows."""
EQUAL_SHARE = 16
"""Share of misses in place, in 32nds, with which both the SMs and the CPU have rows."""
SMALL = Shape(requests=3, topk=96, slots=160, context_rows=1024, steps=STEPS)
USUAL = Shape(requests=1, topk=2048, slots=4096, context_rows=131072, steps=STEPS)
TRACES = ("kept_0.5", "kept_0.98", "all_new", "all_same", "one_more", "twice", "kept_0.9")


@pytest.fixture(scope="module")
def pool() -> Iterator[np.ndarray]:
    with closing(LargePool(POOL_MIB * 2**20, np.random.default_rng(0))) as made:
        yield made.bytes
        WORKLOADS._SHARED.use(None)  # the threads of the latest variant read the pool


def expect_right(
    variant: Variant, pool: np.ndarray, stream: int, trace: str, shape: Shape, share_32nds: int
) -> None:
    """All steps of a trace; of three layers if the study measures graphs of the variant."""
    if "torch" in variant.needs:
        pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    row_bytes = variant.constants["token_bytes"]
    rows = pool[: len(pool) // row_bytes * row_bytes].reshape(-1, row_bytes)
    layers = 3 if any("layers" in case.values for case in variant.cases) else 1
    places = draw_places(layers * shape.requests, shape.context_rows, len(rows), "scattered", rng)
    inputs = WORKLOADS.Inputs(
        shape,
        draw_trace(trace, shape, rng),
        places.reshape(layers, shape.requests, shape.context_rows),
        rows,
        beside=None,
        share_32nds=share_32nds,
    )
    operation = inputs.bind(variant, gpu_module(STUDY, variant.name))
    for number in range(STEPS):
        assert outcome(operation, stream) is None, f"step {number}"


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_step_is_right(variant: Variant, trace: str, pool: np.ndarray, stream: int) -> None:
    is_usual = trace == TRACES[-1]
    share = WORKLOADS.CHOSEN if is_usual else EQUAL_SHARE
    expect_right(variant, pool, stream, trace, USUAL if is_usual else SMALL, share)


@pytest.mark.parametrize("variant", SHIPPED, ids=lambda variant: variant.name)
def test_every_step_of_a_shipped_operator_is_right(variant: Variant, stream: int) -> None:
    pytest.importorskip("torch")
    if reason := unusable(variant):
        pytest.skip(reason)
    values = {"requests": 3, "misses": 1200, "pool_mib": 1024}
    module = gpu_module(STUDY, variant.name)
    operation = bound(STUDY, variant, module, values, largest_pool_mib=1024)
    assert [outcome(operation, stream) for _ in range(24)] == [None] * 24


@pytest.mark.parametrize("requests", [3, 50])
def test_every_step_is_right_where_no_thread_packs(
    requests: int, pool: np.ndarray, stream: int
) -> None:
    """Few requests leave the fetch to a second kernel, many fetch in the blocks that resolve."""
    variant, shape = STUDY.variant("both_on_request"), replace(SMALL, requests=requests)
    expect_right(variant, pool[: 16 * 2**20], stream, "kept_0.5", shape, WORKLOADS.CHOSEN)


def on_request(name: str, study: Any = STUDY, **more: int) -> Any:
    values = {"requests": 3, "topk": 256, "slots": 512, "misses": 90, "pool_mib": 1024, **more}
    variant, module = study.variant(name), gpu_module(study, name)
    return bound(study, variant, module, values, largest_pool_mib=1024)


@pytest.mark.parametrize("share", [{}, {"share_32nds": 0}, {"share_32nds": 16}])
@pytest.mark.parametrize("name", ["packed_on_request", "both_on_request", "met_on_request"])
def test_misses_that_the_cpu_packs_are_right(name: str, share: dict[str, int], stream: int) -> None:
    operation = on_request(name, **share)
    assert [outcome(operation, stream) for _ in range(20)] == [None] * 20


def test_rows_of_late_threads_are_read_in_place(tmp_path: Path, stream: int) -> None:
    late = "miss_fetch.h", "#define PATIENCE_CYCLES 2000000", "#define PATIENCE_CYCLES 0"
    operation = on_request("packed_on_request", study_with_fault(STUDY, tmp_path, *late))
    assert [outcome(operation, stream) for _ in range(20)] == [None] * 20


def test_a_graph_of_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="layers: expected 1, because a graph"):
        on_request("both_on_request", layers=2)
