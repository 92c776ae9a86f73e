"""Where the reads of a launch go, and the pools that they read."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.toolchain.modules import load_python
from kernels.common.large_pool import LargePool
from tests.conformance.binding import outcome
from tests.conformance.emulated import bound
from tests.repository import STUDIES

TRANSLATION = STUDIES["translation"]
WORKLOADS, POOLS = (load_python(TRANSLATION, name) for name in ("workload", "pools"))
MIB = 2**20
pytestmark = pytest.mark.usefixtures("fake")


def test_launches_go_on_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKLOADS, "MIN_DRAWN_ROWS", 160)
    for name, values, firsts in (
        # 4 addresses of 512 lines are read by 4 launches; the first of them was the check's.
        ("independent_lines", {"count": 4, "stride_kib": 64, "reads": 512}, [512, 1024, 1536]),
        ("rows", {"row_bytes": 656, "rows": 40}, [40, 80, 120, 160]),  # a draw for each launch
    ):
        operation = bound("translation", name, values)
        assert outcome(operation) is None
        for _ in range(5):
            operation.launch(0)
        assert operation.module.firsts == [0, *firsts, *firsts][:6]
        assert outcome(operation) is None


def test_every_case_can_be_walked_with_each_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKLOADS, "MIN_DRAWN_ROWS", 40)
    constants, rng = TRANSLATION.constants, np.random.default_rng(0)
    for case in {case.id: case for one in TRANSLATION.variants for case in one.cases}.values():
        assert case.payload_bytes <= constants["largest_bytes"]
        if "rows" in case.values:
            payload = 10 * case.payload_bytes // case.number("rows")
            case = replace(case, values={**case.values, "rows": 10}, payload_bytes=payload)
        walk = WORKLOADS.Walk(case, rng)
        assert walk.is_of_rows or walk.reads <= len(walk.places) * walk.span
        pool = constants["kinds_mib" if "memory" in case.values else "pool_mib"]
        assert walk.extent <= pool * MIB
        assert len(walk.places) * walk.span + walk.reads < 2**32


def test_a_refused_pool_is_made_smaller_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def made(size: int, rng: np.random.Generator, memory: str) -> LargePool:
        asked.append(size // MIB)
        if size > MIB or memory == "host_numa":
            raise Skip("no memory can be page-locked")
        return LargePool(size, rng, memory)

    monkeypatch.setattr(POOLS, "STEP", MIB)
    monkeypatch.setattr(POOLS, "LargePool", made)
    pools = POOLS.Pools({"pool_mib": 4, "kinds_mib": 4}, np.random.default_rng(0))
    assert pools.of("registered_huge", MIB).bytes.size == MIB
    with pytest.raises(Skip, match="no memory can be page-locked"):
        pools.of("registered_huge", 2 * MIB)
    for _ in range(2):
        with pytest.raises(Skip, match="host_numa memory: no memory"):
            pools.of("host_numa", MIB)
    assert asked == [4, 2, 1] * 2
    monkeypatch.setattr(POOLS, "largest_pool", lambda: MIB + 5)
    pools = POOLS.Pools({"pool_mib": 4, "kinds_mib": 4}, np.random.default_rng(0))
    with pytest.raises(Skip, match=r"needs 3145728 B .*this host allows a pool of 1048576 B"):
        pools.of("registered_huge", 3 * MIB)
