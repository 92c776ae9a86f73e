"""Pools of pinned memory: filled, pinned, read back and freed."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
from cuda.bindings import driver

from analysis.base.errors import FieldError
from analysis.measure.cell import Skip
from analysis.measure.memory import largest_pool
from kernels.common import large_pool
from kernels.common.arrays import bytes_at
from kernels.common.host_memory import HUGE_PAGE
from kernels.common.large_pool import LargePool
from tests.kernels.cuda import Cuda, install

MIB = 2**20
SIZE = 5 * MIB + 48


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Cuda:
    return install(monkeypatch)


def make(memory: str, size: int = SIZE) -> LargePool:
    return LargePool(size, np.random.default_rng(0), memory)


def seen_by_gpu(pool: LargePool) -> np.ndarray:
    return bytes_at(pool.pointer, pool.bytes.size)


@pytest.mark.parametrize("memory", ["pinned", "registered", "registered_huge", "device"])
def test_pool_holds_its_rows_until_it_is_closed(fake: Cuda, memory: str) -> None:
    pool = make(memory)
    assert pool.bytes.shape == (SIZE,)
    assert np.array_equal(seen_by_gpu(pool), pool.bytes)
    assert len(np.unique(pool.bytes[-4096:])) > 200
    pool.close()
    pool.close()
    assert set(pool.seconds) == {"touch", "register", "free"}
    released = {"pinned": "cudaFreeHost", "device": "cudaFree"}.get(memory, "cudaHostUnregister")
    assert fake.names().count(released) == 1


def test_all_of_a_pool_differs_from_itself_at_any_power_of_two(fake: Cuda) -> None:
    size = large_pool.TILE + 3 * MIB
    pool = make("registered", size)
    lines = pool.bytes[: size // 16 * 16].view(np.uint64).reshape(-1, 2)
    for power in range(8, 27):
        away = 2**power // 16
        places = np.arange(0, len(lines) - away, 997)
        assert not np.all(lines[places] == lines[places + away], axis=1).any()
    pool.close()


def test_registered_memory_is_registered_whole_and_unregistered_once(fake: Cuda) -> None:
    pool = make("registered_huge")
    pointer = pool.pointer
    assert pointer % HUGE_PAGE == 0
    pool.close()
    assert fake.calls == [("cudaHostRegister", pointer), ("cudaHostUnregister", pointer)]


def test_an_aliased_pool_is_the_same_memory_at_every_address(
    fake: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_pool, "GIB", 2 * MIB)
    pool = make("aliased", 5 * MIB)
    first, second, third = np.split(pool.bytes, [2 * MIB, 4 * MIB])
    assert np.array_equal(first, second)
    assert np.array_equal(first[: third.size], third)
    pool.bytes[4 * MIB] ^= 0xFF
    assert pool.bytes[0] == pool.bytes[2 * MIB] == pool.bytes[4 * MIB]
    assert fake.names() == ["cudaHostRegister"] * 3
    pool.close()
    assert fake.names().count("cudaHostUnregister") == 3


def test_failure_unregisters_earlier_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = install(monkeypatch, Cuda(failing=("cudaHostRegister", 2)))
    monkeypatch.setattr(large_pool, "GIB", 2 * MIB)
    with pytest.raises(Skip, match=r"aliased memory: .*cudaErrorMemoryAllocation"):
        make("aliased", 8 * MIB)
    addresses = [at for name, at in fake.calls if name == "cudaHostRegister"]
    assert len(addresses) == 2
    undone = [at for name, at in fake.calls if name == "cudaHostUnregister"]
    assert undone == addresses[::-1]


@pytest.mark.parametrize(
    ("memory", "call"), [("pinned", "cudaHostAlloc"), ("device", "cudaMalloc")]
)
def test_memory_that_cuda_refuses_is_a_skip(
    monkeypatch: pytest.MonkeyPatch, memory: str, call: str
) -> None:
    install(monkeypatch, Cuda(failing=(call, 0)))
    with pytest.raises(Skip, match=f"{SIZE} B of {memory} memory"):
        make(memory)


def test_memory_copied_to_the_device_in_vain_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = install(monkeypatch, Cuda(failing=("cudaMemcpy", 0)))
    with pytest.raises(Skip):
        make("device")
    assert fake.names() == ["cudaMalloc", "cudaFree"]


def test_missing_1_gib_pages_are_a_skip(fake: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(large_pool, "_map", refuse)
    with pytest.raises(Skip, match=r"registered_1gib memory: .*Cannot allocate memory"):
        make("registered_1gib")


def test_memory_without_huge_pages_is_freed_and_reported(
    fake: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_pool, "huge_bytes", lambda pointer: 0)
    with pytest.raises(Skip, match=f"0 of {SIZE} B on transparent huge pages"):
        make("registered_huge")
    assert fake.calls == []


class FakeDriver:
    """CUDA's virtual memory management: an address range is a buffer of the host."""

    def __init__(self, failing: str = "") -> None:
        self.calls: list[str] = []
        self.buffer = (ctypes.c_uint8 * (8 * MIB))()
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            return getattr(driver, name)

        def call(*_: object) -> tuple[Any, ...]:
            if name == self._failing:
                return (driver.CUresult.CUDA_ERROR_NOT_SUPPORTED,)
            self.calls.append(name)
            values = {
                "cuDeviceGetAttribute": 0,
                "cuMemGetAllocationGranularity": 2 * MIB,
                "cuMemCreate": 7,
                "cuMemAddressReserve": ctypes.addressof(self.buffer),
            }
            return (driver.CUresult.CUDA_SUCCESS, values.get(name))

        return call


def test_memory_on_the_hosts_node_is_mapped_and_given_back(
    fake: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = FakeDriver()
    monkeypatch.setattr(large_pool, "driver", stub)
    pool = make("host_numa")
    assert np.array_equal(seen_by_gpu(pool), pool.bytes)
    assert stub.calls[-1] == "cuMemSetAccess"
    pool.close()
    assert stub.calls[-3:] == ["cuMemUnmap", "cuMemAddressFree", "cuMemRelease"]


def test_unmappable_memory_of_a_numa_node_is_freed(
    fake: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = FakeDriver(failing="cuMemMap")
    monkeypatch.setattr(large_pool, "driver", stub)
    with pytest.raises(Skip, match="cuMemMap: CUDA_ERROR_NOT_SUPPORTED"):
        make("host_numa")
    assert stub.calls[-2:] == ["cuMemAddressFree", "cuMemRelease"]


@pytest.mark.parametrize(
    ("total", "available", "limit"), [(1000, 900, 400), (1000, 400, 320), (1000, 0, 0)]
)
def test_a_pool_leaves_memory_for_the_rest_of_the_host(
    monkeypatch: pytest.MonkeyPatch, total: int, available: int, limit: int
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=total))
    monkeypatch.setattr("analysis.measure.memory.allocatable_bytes", lambda: available)
    assert largest_pool() == limit
    with pytest.raises(Skip, match=f"a pool of {limit + 1} B: this host allows {limit} B"):
        make("registered", limit + 1)


@pytest.mark.parametrize(("memory", "size"), [("swapped", 1), ("pinned", 0), ("pinned", -5)])
def test_a_pool_of_no_kind_or_size_is_an_error(memory: str, size: int) -> None:
    with pytest.raises(FieldError):
        make(memory, size)
