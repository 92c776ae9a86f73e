"""The workload of the gather from a pool: one pool, separate rows for each launch, the check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.measure.cell import Skip
from analysis.study import Case
from kernels.common import large_pool
from tests.kernels.cuda import array_of, outcome
from tests.kernels.pool_gather.fake import (
    POOL,
    WORKLOADS,
    case,
    fake_workload,
    python_module,
)

MIB = 2**20


def bound(workload: Any, name: str = "loads_first", **of_case: Any) -> Any:
    inputs = workload.prepare(case(**of_case))
    return inputs.bind(POOL.variant(name), python_module())


@pytest.mark.parametrize("name", ["loads_first", "ceiling_copy_engine", "split_row"])
def test_every_launch_gathers_a_set_of_its_own(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    slot_bytes = POOL.variant(name).constants["slot_bytes"]
    operation = bound(fake_workload(monkeypatch, slot_bytes=slot_bytes), name=name)
    assert [outcome(operation) for _ in range(3)] == [None] * 3
    gatherer = operation._bound
    assert len(set(gatherer.sets)) == 3
    operation._launches.cursor[0] = 9  # the set of another launch than the last one
    assert "destination row 0" in str(operation.check())


def test_ceilings_read_consecutive_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = fake_workload(monkeypatch)
    pairs = array_of(bound(workload, name="ceiling_sm_copy")._launches.pairs)
    assert (np.diff(pairs[..., 0], axis=1) == 1).all()
    others = array_of(bound(workload)._launches.pairs)
    assert not (np.diff(others[..., 0], axis=1) == 1).all()


def test_variants_take_turns_with_the_sets_and_close_the_one_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs = fake_workload(monkeypatch).prepare(case())
    variants = [POOL.variant(name) for name in ("loads_first", "streaming")]
    first = inputs.bind(variants[0], python_module())
    first.launch(0)
    second = inputs.bind(variants[1], python_module())
    second.launch(0)
    assert first._bound.sets + second._bound.sets == [1, 2]
    assert (first._bound.is_open, second._bound.is_open) == (False, True)


def test_the_check_of_a_large_gather_says_where_it_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = WORKLOADS._CHECKED_ROWS + 10
    workload = fake_workload(monkeypatch, largest_pool_mib=6)
    operation = bound(workload, rows=rows, pool_mib=6)
    operation.poison()
    operation.launch(0)
    array_of(operation._dst)[rows - 1] ^= 1
    assert f"destination row {rows - 1}, byte 0" in str(operation.check())


def test_what_was_read_and_what_will_be_is_flushed_before_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Threads that pack flush by themselves."""
    done: list[Any] = []
    monkeypatch.setattr(WORKLOADS, "flush_rows", lambda table, rows: done.append(rows.tolist()))
    monkeypatch.setattr(WORKLOADS.time, "sleep", done.append)
    paused = Case({**case().values, "pause_ms": 50}, case().payload_bytes, "default")
    inputs = fake_workload(monkeypatch).prepare(paused)
    operation = inputs.bind(POOL.variant("loads_first"), python_module())
    operation.launch(0)
    operation.settle()
    sets = operation._launches.sources
    assert done == [[*sets[1], *sets[2]], 0.05]

    def flush(each: int) -> bool:
        done.append(each)
        return True

    monkeypatch.setattr(operation._bound, "flush", flush)
    operation.settle()
    assert done[2:] == [1, 2, 0.05]


def test_one_pool_serves_all_sizes_and_all_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = fake_workload(monkeypatch)
    other = WORKLOADS.Workload(
        {**POOL.constants, "largest_pool_mib": 4, "slot_bytes": 640}, np.random.default_rng(1)
    )
    for size in (1, 4, 2):
        bound(workload, pool_mib=size)
        bound(other, name="split_row", pool_mib=size)
    assert WORKLOADS._SHARED._pool.bytes.nbytes == 4 * MIB
    cuda: Any = vars(large_pool)["cudart"]
    assert cuda.names().count("cudaHostRegister") == 1
    WORKLOADS._SHARED.close()
    assert cuda.names().count("cudaHostUnregister") == 1


def test_cases_that_fit_are_measured_where_the_largest_pool_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workload = fake_workload(monkeypatch)
    monkeypatch.setattr(large_pool, "largest_pool", lambda: 2 * MIB)
    operation = bound(workload, pool_mib=1)
    with pytest.raises(Skip, match="a pool of 4194304 B: this host allows 2097152 B"):
        workload.prepare(case(pool_mib=4))
    assert not operation._bound.is_open  # its pool is gone
    assert outcome(bound(workload, pool_mib=2)) is None
    assert outcome(bound(workload, pool_mib=1)) is None
    assert WORKLOADS._SHARED._pool.bytes.nbytes == 2 * MIB


def test_multiprocessors_are_counted_where_a_kernel_notes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operation = bound(fake_workload(monkeypatch))
    assert outcome(operation) is None
    assert operation.own_samples(0, 3) == {}
    array_of(operation._sm_launches)[[3, 5]] = 1
    assert operation.check() is None
    array_of(operation._sm_launches)[7] = 1  # by a later launch
    assert operation.own_samples(0, 3) == {"sms_used": [2]}


@pytest.mark.parametrize("changed", [{"token_bytes": 650}, {"slot_bytes": 672}])
def test_rows_that_no_kernel_copies_are_an_error(changed: dict[str, int]) -> None:
    with pytest.raises(FieldError, match=rf"constants\.{next(iter(changed))}: expected"):
        WORKLOADS.Workload({**POOL.constants, **changed}, np.random.default_rng(0))


@pytest.mark.parametrize("pool_mib", [0, 5])
def test_pools_beyond_the_largest_or_without_a_row_are_an_error(
    monkeypatch: pytest.MonkeyPatch, pool_mib: int
) -> None:
    with pytest.raises(FieldError, match=f"pool_mib: expected .*, got {pool_mib}"):
        fake_workload(monkeypatch).prepare(case(pool_mib=pool_mib))
