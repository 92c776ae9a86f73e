"""The gather from a pool: the rows of launches, the one pool of a process, pauses, arguments."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.toolchain.modules import load_python
from kernels.common import large_pool, shared_pool
from kernels.pool_gather.answers import places
from tests.conformance.binding import outcome
from tests.conformance.emulated import bound, draw_few
from tests.kernels.cuda import Cuda, array_of
from tests.repository import STUDIES

POOL = STUDIES["pool_gather"]
WORKLOADS, DRAWS = (load_python(POOL, name) for name in ("workload", "draws"))
MIB = 2**20


@pytest.fixture
def shared(fake: Cuda, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """What variants share, with nothing in it yet."""
    draw_few(monkeypatch)
    made = shared_pool.Shared()
    monkeypatch.setattr(WORKLOADS, "_SHARED", made)
    yield made
    made.close()


def gather(name: str = "loads_first", **values: Any) -> Any:
    return bound("pool_gather", name, values, largest_pool_mib=4)


def test_launches_take_turns_with_the_sets_and_only_the_latest_variant_is_open(shared: Any) -> None:
    first = gather()
    assert [outcome(first) for _ in range(3)] == [None] * 3
    second = first.inputs.bind(POOL.variant("streaming"), first.module)
    second.launch(0)
    assert first._bound.sets + second._bound.sets == [1, 2, 3, 0]
    assert (first._bound.is_open, second._bound.is_open) == (False, True)
    second._launches.cursor[0] = 2  # the set of another launch than the last one
    assert "destination row 0" in str(second.check())


def test_ceilings_read_consecutive_rows(shared: Any) -> None:
    for name in ("ceiling_sm_copy", "loads_first"):
        steps = np.diff(array_of(gather(name)._launches.pairs)[..., 0], axis=1)
        assert (steps == 1).all() == (name == "ceiling_sm_copy")


def test_the_last_row_and_all_sms_are_checked(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WORKLOADS, "_CHECKED_ROWS", 128)
    operation = gather()
    assert outcome(operation) is None
    assert operation.own_samples(0, 3) == {}
    array_of(operation._sm_launches)[[3, 5]] = 1
    assert operation.check() is None
    assert operation.own_samples(0, 3) == {"sms_used": [2]}
    array_of(operation._dst)[299] ^= 1
    assert "destination row 299, byte 0" in str(operation.check())


def test_past_and_next_rows_are_flushed_in_a_pause(
    shared: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads that pack flush by themselves."""
    done: list[Any] = []
    monkeypatch.setattr(WORKLOADS, "flush_rows", lambda table, rows: done.append(rows.tolist()))
    monkeypatch.setattr(WORKLOADS.time, "sleep", done.append)
    operation = gather(pause_ms=50)
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


def test_one_pool_serves_all_cases(
    shared: Any, fake: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size, name in ((1, "loads_first"), (4, "split_row"), (2, "loads_first")):
        assert outcome(gather(name, pool_mib=size)) is None
    assert shared._pool.bytes.nbytes == 4 * MIB
    shared.close()
    assert fake.names().count("cudaHostRegister") == fake.names().count("cudaHostUnregister") == 1
    monkeypatch.setattr(large_pool, "largest_pool", lambda: 2 * MIB)
    operation = gather(pool_mib=1)
    with pytest.raises(Skip, match="a pool of 4194304 B: this host allows 2097152 B"):
        gather(pool_mib=4)
    assert not operation._bound.is_open  # its pool is gone
    assert outcome(gather(pool_mib=2)) is None


def test_packing_needs_a_second_core(shared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_pool, "cores", lambda: [0])
    with pytest.raises(Skip, match="there is only one"):
        gather("packed_by_cpu")
    gather("loads_first")


def test_draws_with_many_repeats_answer_nothing_about_rows_fetched_once() -> None:
    def is_answered(variant: str, pool_mib: int) -> bool:
        return any(places(variant, {"rows": 2**18, "pool_mib": pool_mib, "layout": "scattered"}))

    assert is_answered("fetched_once", 4096) and is_answered("sorted", 188)
    assert not is_answered("fetched_once", 188)
