"""The reach of the GPU's translations, and gathers from larger pools."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from kernels.transfers.pools import Gather, Pools, RowSeconds, reach_bytes, read_pools
from tests.repository import STUDIES

GIB = 2**30
REACH = 0.6 * GIB
WALK_S = 4e-8


def row_seconds(pool: float, size: float) -> float:
    """Seconds of a row: its bytes, or the walks of those that the pool's translations miss."""
    return max(size / 50e9, WALK_S * (1 - REACH / pool) if pool > REACH else 0.0)


def measured(*pools: float) -> RowSeconds:
    return {(int(p * GIB), s): row_seconds(p * GIB, s) for p in pools for s in (128, 656, 1024)}


def test_the_reach_is_found() -> None:
    assert reach_bytes(measured(0.2, 1, 2, 4, 16, 40)) == pytest.approx(REACH, rel=0.01)
    assert math.isnan(reach_bytes(measured(0.2, 0.5, 1))), "one pool with page walks"
    assert math.isnan(reach_bytes({}))


def test_a_machine_without_a_reach_has_the_smallest_of_the_others() -> None:
    assert Pools({"one": 2.0, "two": 3.0}, []).reach("two") == 3.0
    assert Pools({"one": 2.0, "two": 3.0}, []).reach("three") == 2.0
    assert Pools({}, []).reach("three") is None


def test_the_nearest_gather_differs_least_on_its_worst_axis() -> None:
    few, many = (Gather("box", "way", 656, n, 4 * GIB, 1e-5) for n in (2048, 262_144))
    pools = Pools({}, [few, many, Gather("other", "way", 656, 9000, 4 * GIB, 1e-5)])
    assert pools.nearest("box", 656, 9000, 4 * GIB) == few
    assert pools.nearest("box", 656, 90_000, 40 * GIB) == many
    assert pools.nearest("none", 656, 9000, 4 * GIB) is None


def test_a_pool_beyond_the_reach_is_refused() -> None:
    pools = Pools({"box": GIB}, [Gather("box", "way", 656, 2048, 40 * GIB, 5e-5)])
    assert pools.refusal("box", 656, 2048, GIB) == ""
    assert pools.refusal("box", 656, 2048, 40 * GIB) == (
        "not measured: lists in a pool of 40 GiB, beyond the 1024 MiB that a GPU's translations"
        " cover. The nearest gather to the device, in the study pool_gather: 2048 × 656 B from"
        " 40 GiB in 50.00 µs, by way"
    )
    nothing = Pools({}, [])
    assert nothing.refusal("box", 1024, 1024, 2**20) == "", "the pieces fill it"
    assert nothing.refusal("box", 1024, 1024, 2**21) == "not measured: lists in a pool of 2 MiB"


def test_without_results_no_pool_is_known(tmp_path: Path) -> None:
    assert read_pools(tmp_path, STUDIES["transfers"]) == Pools({}, [])
