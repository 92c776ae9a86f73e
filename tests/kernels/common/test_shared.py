"""Memory that studies share; the kernel beside a gather, on a GPU whose clock only work moves."""

import mmap
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.measure.memory import largest_pool
from kernels.common import host_memory, large_pool, neighbours
from kernels.common.arrays import bytes_at
from kernels.common.outputs import POISON, wrong_byte, wrong_row
from tests.kernels.cuda import Cuda, install

MIB = 2**20
SIZE = 5 * MIB + 48
COUNTED = host_memory.huge_bytes  # which no test has replaced yet


def make(memory: str, size: int = SIZE) -> large_pool.LargePool:
    return large_pool.LargePool(size, np.random.default_rng(0), memory)


def test_host_memory_is_pinned_while_it_is_open(fake: Cuda) -> None:
    for kind, steps in (("pageable", set()), ("registered", {"register"})):
        memory = host_memory.HostMemory(kind, 10_000)
        assert memory.pointer % host_memory.HUGE_PAGE == 0
        memory.bytes[:] = 7
        for _ in range(2):
            memory.close()
        assert set(memory.seconds) == {"allocate", "free"} | steps
    assert fake.names() == ["cudaHostRegister", "cudaHostUnregister"]


def test_huge_pages_are_counted(
    fake: Cuda, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    smaps = tmp_path / "smaps"
    smaps.write_text(
        "1000-3000 rw-p 00000000 00:00 0\nAnonHugePages:         0 kB\n"
        "3000-9000 rw-p 00000000 00:00 0\nRss: 8 kB\nAnonHugePages:      2048 kB\n"
    )
    found = [COUNTED(address, smaps) for address in (0x3000, 0x2FFF, 0xFFFF)]
    assert found == [2 * MIB, 0, 0]
    for module in (host_memory, large_pool):
        monkeypatch.setattr(module, "huge_bytes", lambda pointer: 0)
    with pytest.raises(host_memory.NoHugePages, match="0 of 4194304 B"):
        host_memory.HostMemory("registered_huge", 4 * MIB)
    with pytest.raises(Skip, match=f"0 of {SIZE} B on transparent huge pages"):
        make("registered_huge")

    def refuse(*_: object) -> int:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(mmap, "mmap", type("Mapping", (mmap.mmap,), {"madvise": refuse}))
    with pytest.raises(host_memory.NoHugePages, match="the kernel has none"):
        host_memory.HostMemory("registered_huge", 100)
    monkeypatch.setattr(large_pool, "_map", refuse)
    with pytest.raises(Skip, match=r"registered_1gib memory: .*Cannot allocate memory"):
        make("registered_1gib")
    assert fake.calls == []


@pytest.mark.parametrize("memory", ["pinned", "registered", "registered_huge", "device"])
def test_a_pool_holds_its_rows_until_it_is_closed(fake: Cuda, memory: str) -> None:
    pool = make(memory)
    assert np.array_equal(bytes_at(pool.pointer, SIZE), pool.bytes)
    assert len(np.unique(pool.bytes[-4096:])) > 200
    for _ in range(2):
        pool.close()
    assert set(pool.seconds) == {"touch", "register", "free"}
    released = {"pinned": "cudaFreeHost", "device": "cudaFree"}.get(memory, "cudaHostUnregister")
    assert fake.names().count(released) == 1


def test_a_pool_differs_from_itself_at_any_power_of_two(fake: Cuda) -> None:
    pool = make("registered", large_pool.TILE + 3 * MIB)
    lines = pool.bytes.view(np.uint64).reshape(-1, 2)
    for away in (2**power // 16 for power in range(8, 27)):
        places = np.arange(0, len(lines) - away, 997)
        assert not np.all(lines[places] == lines[places + away], axis=1).any()
    pool.close()


def test_an_aliased_pool_repeats_its_memory(fake: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_pool, "GIB", 2 * MIB)
    pool = make("aliased", 5 * MIB)
    pool.bytes[4 * MIB] ^= 0xFF
    first, second, third = np.split(pool.bytes, [2 * MIB, 4 * MIB])
    assert np.array_equal(first, second) and np.array_equal(first[: third.size], third)
    pool.close()
    assert fake.names() == ["cudaHostRegister"] * 3 + ["cudaHostUnregister"] * 3


@pytest.mark.parametrize(
    ("memory", "call", "succeed", "undone"),
    [
        ("aliased", "cudaHostRegister", 2, ["cudaHostRegister", "cudaHostUnregister"]),
        ("pinned", "cudaHostAlloc", 0, []),
        ("device", "cudaMemcpy", 0, ["cudaMalloc", "cudaFree"]),
    ],
)
def test_memory_that_cuda_refuses_is_a_skip_and_undone(
    monkeypatch: pytest.MonkeyPatch, memory: str, call: str, succeed: int, undone: list[str]
) -> None:
    fake = install(monkeypatch, Cuda(failing=(call, succeed)))
    monkeypatch.setattr(large_pool, "GIB", 2 * MIB)
    with pytest.raises(Skip, match=f"{SIZE} B of {memory} memory: .*cudaErrorMemoryAllocation"):
        make(memory)
    assert fake.names() == [name for name in undone for _ in range(succeed or 1)]


def test_a_pool_leaves_memory_for_the_rest_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for available, limit in ((900, 720), (0, 0)):
        monkeypatch.setattr("analysis.measure.memory.allocatable_bytes", lambda a=available: a)
        assert largest_pool() == limit
        with pytest.raises(Skip, match=f"a pool of {limit + 1} B: this host allows {limit} B"):
            make("registered", limit + 1)


def test_the_first_wrong_byte_is_reported() -> None:
    expected = np.arange(4, dtype=np.uint32)
    output = np.concatenate([expected.view(np.uint8), np.full(8, POISON, np.uint8)])
    assert wrong_byte(output, expected) is None
    for offset, value, message in (
        (23, 0, "byte 23, after the output, was overwritten"),
        (16, 0, "byte 16, after the output, was overwritten"),
        (15, 7, "byte 15: expected 0, got 7"),
        (4, 9, "byte 4: expected 1, got 9"),
    ):
        output[offset] = value
        assert wrong_byte(output, expected) == message
    rows = np.arange(12, dtype=np.uint8).reshape(4, 3)
    landed = rows.copy()
    landed[2, 1] = landed[3, 0] = 99
    assert wrong_row(landed[:2], rows[:2]) is None
    assert wrong_row(landed, rows) == "destination row 2, byte 1: expected 7, got 99"
    assert wrong_row(landed[2:], rows[2:], first_row=2) == wrong_row(landed, rows)


WORK_S, SLOWER = 0.004, 1.25


class Clock:
    """A fake torch.cuda of a GPU on which gathers make other work slower."""

    def __init__(self) -> None:
        self.now, self.in_flight, self.most_in_flight = 0.0, 0, 0
        nothing: Any = lambda *_, **__: nullcontext()  # noqa: E731
        self.Stream = self.stream = nothing

    def work(self) -> None:
        self.now += WORK_S * (SLOWER if self.in_flight else 1)

    def launch(self, stream: int) -> None:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def ExternalStream(self, address: int) -> Any:
        return SimpleNamespace(synchronize=lambda: setattr(self, "in_flight", 0))

    def Event(self, enable_timing: bool = False) -> Any:
        event, polls = SimpleNamespace(at=0.0), iter(range(99))

        def end() -> None:
            self.in_flight -= not enable_timing

        event.record = lambda stream: setattr(event, "at", self.now)
        event.synchronize, event.query = end, lambda: next(polls) > 5
        event.elapsed_time = lambda end: (end.at - event.at) * 1e3
        return event


def test_the_slowdown_is_that_of_work_among_gathers() -> None:
    clock = Clock()
    beside = neighbours.Neighbour(clock, clock.work)
    assert beside.slowdown(clock.launch, 7) == pytest.approx(SLOWER)
    assert clock.in_flight == 0
    assert 1 < clock.most_in_flight <= neighbours.MOST_IN_FLIGHT + 1
