"""The tapes, the runner that replays them, and the reported metrics."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from allocator.lib import patterns
from allocator.phases.tables import STEPS
from analysis.toolchain.derived import derive_tables, read_derived
from analysis.toolchain.modules import load_module, module_path
from tests.kernels.phases.modules import (
    ALLOCATORS,
    GPU_BYTES,
    MIB,
    STUDY,
    Host,
    built,
    workload,
)

QUICKLY_DRAWN = [name for name in sorted(patterns.PATTERNS) if "_100000_" not in name]


def tape(*rows: tuple[int, int, int, int]) -> np.ndarray:
    return np.array(rows, np.uint64)


@pytest.mark.parametrize(
    ("name", "exactly"),
    [("streams_2", True), ("streams_busy", False), ("threads_2", False), ("cold_warm", True)],
)
def test_threads_and_work_of_the_gpu_keep_a_tape_from_repeating_exactly(
    name: str, exactly: bool
) -> None:
    assert patterns.PATTERNS[name]().repeats_exactly is exactly


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(4, 0, 1, 0)], "operation 0: expected kind 0 to 3, got 4"),
        ([(0, 0, 1, 1)], "operation 0: expected a stream below 1, got 1"),
        ([(0, 0, 1, 0), (0, 0, 1, 0)], "operation 1: expected an empty slot"),
        ([(1, 0, 0, 0)], "operation 0: expected a slot in use"),
        ([(0, 0, 0, 0)], "operation 0: expected at least one byte"),
        ([(0, 0, 7, 0), (3, 0, 8, 0)], "operation 1: expected 1 to 7 bytes to write, got 8"),
        ([(0, 0, 1, 0)], "expected every allocation freed at its end, got 1 left"),
    ],
)
def test_a_tape_that_makes_no_sense_is_refused(
    final: Host, rows: list[tuple[int, int, int, int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        final.module.Runner(final.allocator, [tape(*rows)], [0])


def test_the_runner_counts_what_a_tape_asks_for(final: Host) -> None:
    rows = tape(
        (0, 0, 1000, 0), (0, 1, 500, 0), (1, 0, 0, 0), (0, 0, 100, 0), (1, 1, 0, 0), (1, 0, 0, 0)
    )
    runner = final.module.Runner(final.allocator, [rows, rows], [0])
    assert runner.operations == 6
    assert 1500 <= runner.check(False) <= 3000
    assert runner.run(3) > 0
    alone = final.module.Runner(final.allocator, [rows], [0])
    assert alone.run_after_other_work() > 0
    p50, p99, p999, longest = runner.latencies(100)
    assert 0 < p50 <= p99 <= p999 <= longest * 1.05
    assert final.statistics()["allocations"] == 3 * (2 * (1 + 3 + 100) + 1)


@pytest.mark.parametrize("name", QUICKLY_DRAWN)
def test_every_pattern_frees_what_it_allocates(final: Host, name: str) -> None:
    pattern = patterns.PATTERNS[name]()
    final.module.Runner(final.allocator, pattern.tapes, list(range(pattern.streams)))
    again = patterns.PATTERNS[name]()
    assert all(np.array_equal(a, b) for a, b in zip(pattern.tapes, again.tapes, strict=True))


def test_rmm_random_keeps_its_parameters() -> None:
    (rows,) = patterns.PATTERNS["rmm_1000_64mib"]().tapes
    sizes = rows[rows[:, 0] == 0, 2].astype(np.int64)
    assert len(sizes) <= 1000
    assert sizes.max() <= 64 * MIB
    live = np.cumsum(np.where(rows[:, 0] == 0, 1, -1))
    assert live[-1] == 0
    held: dict[int, int] = {}
    for kind, slot, size, _ in rows.tolist():
        held[slot] = size if kind == 0 else 0
        assert sum(held.values()) <= 16_000 * MIB


@pytest.mark.parametrize("name", ALLOCATORS)
def test_the_workload_measures_every_allocator(name: str) -> None:
    module = built(name)
    pattern = patterns.PATTERNS["varying_sizes"]()
    parts = workload.Reported.CALLS | workload.Reported.MEMORY | workload.Reported.LATENCIES
    operation = workload.CppReplay(
        module, pattern, parts, source=lambda: module.HostSource(GPU_BYTES)
    )
    operation.poison()
    assert operation.check() == "never replayed"
    operation.launch(0)
    assert operation.check() is None
    samples = operation.own_samples(0, 1)
    assert set(samples) <= set(STUDY.metrics)
    assert samples["op_time"][0] > 0
    expected = len(pattern.tapes[0]) if name == "p0_driver" else 0
    assert samples["driver_calls"][0] == expected


class CountingDriver:
    """A driver for the write-up's phases in Python: addresses that are never given out twice."""

    def __init__(self) -> None:
        self.live: dict[int, int] = {}
        self.calls = 0
        self._next = 2**40

    def allocate(self, size: int) -> int:
        self.calls += 1
        pointer, self._next = self._next, self._next + size
        self.live[pointer] = size
        return pointer

    def free(self, pointer: int) -> None:
        self.calls += 1
        del self.live[pointer]


@pytest.mark.parametrize("phase", range(4))
def test_phases_in_python_call_the_driver_as_those_in_cpp(phase: int) -> None:
    seed = STUDY.variant(f"published_p{phase}")
    compiled = ALLOCATORS[phase]
    for name in (str(case["pattern"]) for case in STUDY.variant(compiled).cases):
        pattern = patterns.PATTERNS[name]()
        driver = CountingDriver()
        memory = load_module(Path(), STUDY, seed).Memory(driver)
        operation = workload.PythonReplay(
            pattern,
            lambda memory=memory: workload.RawCalls(
                lambda size: workload.Storage(memory, size), lambda held: None
            ),
        )
        operation.launch(0)
        assert operation.check() is None
        host = Host(built(compiled))
        host.module.Runner(host.allocator, pattern.tapes, [0]).run(1)
        assert driver.calls == sum(host.calls), name


def test_memory_handed_out_twice_is_a_fault() -> None:
    pattern = patterns.PATTERNS["same_size"]()
    calls = workload.RawCalls(lambda size: 4096, lambda held: None)
    operation = workload.PythonReplay(pattern, lambda: calls)
    operation.launch(0)
    assert "live allocation" in operation.check()


def test_the_picture_of_blocks_has_the_calls_of_the_allocators(tmp_path: Path) -> None:
    (tmp_path / STUDY.name).mkdir()
    for name in STEPS:
        shutil.copy(built(name).__file__, module_path(tmp_path, STUDY, STUDY.variant(name)))
    assert derive_tables(STUDY, tmp_path, tmp_path) == {}
    after = read_derived(tmp_path)["after_short"]
    for picture in STUDY.folder.glob("blocks.*.svg"):
        for variant, blocks in after.groupby("variant"):
            calls = int(blocks["driver_calls"].iloc[0])
            assert f"{variant}: {calls} driver call" in picture.read_text(), "draw it anew"
