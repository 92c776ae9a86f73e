"""Page walks of large pools: from made-up gathers, and beside the measured ones of a study."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.results.store.collect import collect
from analysis.results.tables.summary import summarise
from analysis.study import parse_case
from kernels.transfers.pools import Pools, pools_of_machines, reach_bytes, touches, walking
from tests.repository import STUDIES

GIB = 2**30
REACH = 0.6 * GIB
WALK_S = 4e-8


def row_seconds(pool: float, size: float) -> float:
    """Seconds of a row: its bytes, or the walks of those that the pool's translations miss."""
    return max(size / 50e9, touches(size) * WALK_S * (1 - REACH / pool) if pool > REACH else 0.0)


def made_up() -> Pools:
    pools, sizes = (0.2, 1, 2, 4, 16, 40), (128, 656, 1024)
    return walking({(int(p * GIB), s): row_seconds(p * GIB, s) for p in pools for s in sizes})


def test_only_pools_that_wait_for_walks_are_known() -> None:
    pools = dict(made_up())
    assert min(pools) == GIB and max(pools) == 40 * GIB
    assert [size for size, _ in pools[GIB]] == [128, 656], "1 KiB takes the link as long"
    assert [size for size, _ in pools[40 * GIB]] == [128, 656, 1024]


def test_the_walks_and_the_reach_are_found() -> None:
    pools = made_up()
    assert reach_bytes(pools) == pytest.approx(REACH, rel=0.01)
    for _, seconds in dict(pools)[40 * GIB]:
        assert seconds == pytest.approx(WALK_S * (1 - REACH / (40 * GIB)))
    assert math.isnan(reach_bytes(pools[:1]))


def test_rows_without_a_time_from_the_smallest_pool_are_compared_in_proportion() -> None:
    found = walking({(GIB // 8, 656): 13e-9, (4 * GIB, 4096): 82e-9, (4 * GIB, 1024): 28e-9})
    assert [[size for size, _ in times] for _, times in found] == [[1024]]


def test_without_results_no_pool_is_known(tmp_path: Path) -> None:
    assert pools_of_machines(tmp_path) == {}


def test_walks_agree_with_the_study_of_large_pools() -> None:
    """Rows of 656 bytes from 40 GiB, gathered by another study, on every machine with both."""
    study = STUDIES["pool_gather"]
    samples = collect(ROOT / "results", {study.name: study}, only={study.name}).samples
    here = samples[(samples["study"] == study.name) & (samples["variant"] == "loads_first")]
    known = pools_of_machines(ROOT / "results")
    compared = 0
    for row in summarise(here).to_dict("records"):
        case = parse_case(row["case"])
        is_large = case["pool_mib"] == 40 * 1024 and case["layout"] == "scattered"
        if row["metric"] != "gpu_time" or not is_large or int(case["rows"]) < 2**18:
            continue
        (at,) = (times for pool, times in known.get(row["machine"], []) if pool == 40 * GIB)
        walks = dict(at)[656] * touches(656) * int(case["rows"])
        assert walks == pytest.approx(row["median"], rel=0.05)
        compared += 1
    assert compared
