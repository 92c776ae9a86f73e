"""The gather from a pool on a GPU: every variant is right in every launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.measure.cell import Operation
from tests.compiled import gpu_module
from tests.kernels.pool_gather.fake import POOL, WORKLOADS, case

pytestmark = pytest.mark.gpu

NAMES = [v.name for v in POOL.subjects]
CASES = [
    case(1),
    case(3000, "scattered"),
    case(70_000, "scattered", pool_mib=64),
    case(20_000, "pages_64", pool_mib=64),
    # More than any GPU holds the translations of, so that it is sorted, and beyond 2**31 bytes.
    case(20_000, "scattered", pool_mib=3072),
]


def bound(name: str, at: Any) -> Operation:
    constants = {**POOL.variant(name).constants, "largest_pool_mib": 3072}
    inputs = WORKLOADS.Workload(constants, np.random.default_rng(0)).prepare(at)
    operation: Operation = inputs.bind(POOL.variant(name), gpu_module(POOL, name))
    return operation


@pytest.mark.parametrize("at", CASES, ids=lambda at: at.id)
@pytest.mark.parametrize("name", NAMES)
def test_variant_is_right_in_every_launch(name: str, at: Any, stream: int) -> None:
    from analysis.measure.memory import synchronize

    operation = bound(name, at)
    for _ in range(3):
        operation.poison()
        operation.launch(stream)
        synchronize(stream)
        assert operation.check() is None


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((1598, 0), r"pairs\[3\]: expected a source row in \[0, 1598\), got 1598"),
        ((-1, 0), r"pairs\[3\]: expected a source row"),
        ((0, 20), r"pairs\[3\]: expected a destination row in \[0, 20\), got 20"),
    ],
)
def test_rows_outside_are_refused(pair: tuple[int, int], message: str) -> None:
    operation: Any = bound("loads_first", case(4))
    pairs = operation._launches.pairs.get()
    pairs[0, 3] = pair
    operation._launches.pairs.put(pairs)
    with pytest.raises(ValueError, match=message):
        gpu_module(POOL, "loads_first").bind(
            pool=operation._table.slots,
            dst=operation._dst,
            pairs=operation._launches.pairs,
            sm_launches=operation._sm_launches,
            scales=None,
            cpus=[],
            current=np.zeros(1, np.int64),
        )


def test_a_closed_gather_and_a_set_that_is_not_there_are_refused(stream: int) -> None:
    operation: Any = bound("sorted", case(4))
    with pytest.raises(ValueError, match="set: expected below"):
        operation._bound.flush(2**20)
    operation._bound.close()
    with pytest.raises(ValueError, match="gather: expected one that is open"):
        operation.launch(stream)
