"""The allocators over a source that only counts: each phase's rules, all p4_final promises."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from analysis import ROOT
from analysis.build.compile import compile_bindings, compile_module
from analysis.build.toolchain import find_toolchain
from analysis.measure.cell import Skip
from analysis.measure.modules import load_module, load_workload
from analysis.study import Case, discover

STUDY = discover()["allocator"]
WORKLOAD = load_workload(STUDY)
PATTERNS: Any = sys.modules["allocator.patterns"]
ALLOCATORS = [
    *("p0_driver", "p1_exact_cache", "p2_size_buckets", "p3_block_pool"),
    *("p4_tlsf", "p4_exact_front", "p4_final"),
]
QUICKLY_DRAWN = [name for name in sorted(PATTERNS.PATTERNS) if "_100000_" not in name]
KIB, MIB, GIB = 2**10, 2**20, 2**30
GPU_BYTES = 79 * GIB

LONG = "HOTPATH_LONG" in os.environ
"""Whether a million operations are wanted instead of what fits a commit."""


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """Loads a variant's module, built when it is first asked for."""
    folder = tmp_path_factory.mktemp("modules")
    bindings = folder / STUDY.name / "bindings.o"
    bindings.parent.mkdir()
    compile_bindings(STUDY, find_toolchain(), bindings)

    def load(name: str) -> Any:
        variant = STUDY.variant(name)
        out = folder / STUDY.name / f"{name}.so"
        if not out.exists():
            compile_module(STUDY, variant, find_toolchain(), "sm_90", bindings, out)
        return load_module(folder, STUDY, variant)

    return load


class Host:
    """An allocator of a variant, over devices that have `capacity` bytes."""

    def __init__(self, module: Any, capacity: int = GPU_BYTES) -> None:
        self.module = module
        self.source = module.HostSource(capacity)
        self.own = module.Allocator(self.source)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    @property
    def calls(self) -> tuple[int, int]:
        """Allocations and frees the driver was asked for."""
        counts = self.source.counts()
        return counts["allocations"], counts["frees"]


# Each phase keeps the rules, and the defects, it has in the write-up.


def test_phase_0_calls_the_driver_every_time(modules: Callable[[str], Any]) -> None:
    host = Host(modules("p0_driver"))
    for _ in range(3):
        host.free(host.allocate(1000))
    assert host.calls == (3, 3)
    assert host.source.counts()["peak_reserved"] == 1000


def test_phase_1_keeps_exact_sizes_only(modules: Callable[[str], Any]) -> None:
    host = Host(modules("p1_exact_cache"))
    first = host.allocate(1000)
    host.free(first)
    assert host.allocate(513) == first  # both are 1024 B, rounded to 512
    host.free(first)
    assert host.allocate(1025) != first
    assert host.calls == (2, 0)


def test_phase_1_gives_back_what_exceeds_a_gibibyte(modules: Callable[[str], Any]) -> None:
    host = Host(modules("p1_exact_cache"))
    half, other, small = host.allocate(GIB // 2), host.allocate(GIB // 2), host.allocate(512)
    for pointer in (half, other, small):
        host.free(pointer)
    assert host.calls == (3, 1)  # the last did not fit: nothing older made room for it
    assert host.source.counts()["reserved"] == GIB


def test_phase_1_fails_with_a_cache_full_of_other_sizes(modules: Callable[[str], Any]) -> None:
    host = Host(modules("p1_exact_cache"), capacity=MIB)
    host.free(host.allocate(MIB))
    with pytest.raises(host.module.OutOfMemory):
        host.allocate(512)


def test_phase_2_rounds_to_powers_of_two_up_to_16_mib(modules: Callable[[str], Any]) -> None:
    host = Host(modules("p2_size_buckets"))
    sizes = {1: 512, 513: 1024, 9 * MIB: 16 * MIB, 16 * MIB: 16 * MIB, 16 * MIB + 1: 16 * MIB + 512}
    for asked, expected in sizes.items():
        before = host.source.counts()["reserved"]
        host.allocate(asked)
        assert host.source.counts()["reserved"] - before == expected


def test_phase_2_keeps_the_limit_of_phase_1(modules: Callable[[str], Any]) -> None:
    host = Host(modules("p2_size_buckets"))
    held = [host.allocate(GIB // 2) for _ in range(3)]
    for pointer in held:
        host.free(pointer)
    assert host.calls == (3, 1)


def test_phase_3_cuts_segments_from_1_mib_on(modules: Callable[[str], Any]) -> None:
    host = Host(modules("p3_block_pool"))
    host.allocate(MIB - 1)
    assert host.source.counts()["reserved"] == MIB  # a bucket
    pointers = [host.allocate(MIB + 1) for _ in range(3)]
    assert host.source.counts()["reserved"] == GIB + MIB
    assert np.diff(pointers).tolist() == [MIB + 512] * 2
    host.allocate(2 * GIB)
    assert host.source.counts()["reserved"] == 3 * GIB + MIB


def test_phase_3_fits_best_and_merges(modules: Callable[[str], Any]) -> None:
    host = Host(modules("p3_block_pool"))
    gaps = [host.allocate(size * MIB) for size in (5, 1, 3, 1, 4, 1)]
    for pointer in gaps[::2]:
        host.free(pointer)
    assert host.allocate(3 * MIB) == gaps[2]
    host.free(gaps[2])
    host.free(gaps[1])  # joins the 5 before and the 3 behind it
    assert host.allocate(9 * MIB) == gaps[0]


def test_phase_3_never_gives_a_segment_back(modules: Callable[[str], Any]) -> None:
    host = Host(modules("p3_block_pool"), capacity=GIB)
    host.free(host.allocate(2 * MIB))
    host.trim()
    assert host.source.counts()["reserved"] == GIB
    with pytest.raises(host.module.OutOfMemory):
        host.allocate(512)


@pytest.mark.parametrize("name", ["p1_exact_cache", "p2_size_buckets", "p3_block_pool"])
def test_early_phases_do_not_know_streams(modules: Callable[[str], Any], name: str) -> None:
    host = Host(modules(name))
    pointer = host.allocate(4096, stream=1)
    host.source.enqueue(0, 2)
    host.record_stream(pointer, 2)
    host.free(pointer, stream=1)
    assert host.allocate(4096, stream=3) == pointer  # though stream 2 may still write there


@pytest.mark.parametrize("name", ["p4_tlsf", "p4_exact_front", "p4_final"])
def test_ours_grows_in_pytorchs_segments(modules: Callable[[str], Any], name: str) -> None:
    for asked, segment in {
        1: 2 * MIB,
        MIB: 2 * MIB,
        MIB + 1: 20 * MIB,
        10 * MIB - 512: 20 * MIB,
        10 * MIB: 10 * MIB,
        10 * MIB + 1: 12 * MIB,
    }.items():
        host = Host(modules(name))
        host.allocate(asked)
        assert host.source.counts()["reserved"] == segment


def test_the_front_keeps_only_sizes_that_come_back(modules: Callable[[str], Any]) -> None:
    host = Host(modules("p4_exact_front"))
    once, again = host.allocate(4096), host.allocate(8192)
    for pointer in (once, again):
        host.free(pointer)
    states = {block["size"]: block["state"] for block in host.snapshot()}
    assert states[4096] == states[8192] == "cached"
    host.allocate(4096 + 65 * 512)  # shares the slot of 4096, which is merged and given up
    assert 4096 not in {b["size"] for b in host.snapshot() if b["state"] == "cached"}


def test_the_last_fit_of_a_bin_is_found(modules: Callable[[str], Any]) -> None:
    """Ten blocks of the request's bin are too small, and one behind them in the list is not."""
    host = Host(modules("p4_tlsf"))
    granule, small, fit = 512, 200, 203  # of granules; one bin holds 200 to 203
    pointers = {}
    for i, size in enumerate([*[small] * 10, fit]):
        pointers[i] = host.allocate(size * granule)
        host.allocate(granule)  # keeps them apart
    host.allocate((4096 - 10 * (small + 1) - (fit + 1)) * granule)  # the rest of the segment
    for i in reversed(pointers):
        host.free(pointers[i])
    assert host.allocate(fit * granule) == pointers[10]
    assert host.calls == (1, 0)


# What p4_final promises.


@pytest.fixture
def final(modules: Callable[[str], Any]) -> Host:
    return Host(modules("p4_final"))


def test_a_block_waits_for_the_streams_that_use_it(final: Host) -> None:
    pointer = final.allocate(MIB, stream=1)
    final.source.enqueue(0, 2)
    final.record_stream(pointer, 2)
    final.free(pointer)
    # Two of them are a segment: a third request would have to take what is waiting.
    held = [final.allocate(MIB, stream=1) for _ in range(3)]
    assert pointer not in held
    final.source.complete(0, 2, 1)
    assert pointer in [final.allocate(MIB, stream=1) for _ in range(2)]


def test_one_event_a_stream_serves_a_batch(final: Host) -> None:
    pointers = [final.allocate(4096, stream=1) for _ in range(32)]
    for pointer in pointers:
        final.record_stream(pointer, 2)
        final.record_stream(pointer, 3)
        final.free(pointer)
    assert final.source.counts()["event_records"] == 2


def test_heaps_of_streams_and_devices_are_apart(final: Host) -> None:
    here = final.allocate(4096, device=0, stream=1)
    final.free(here, device=0)
    assert final.allocate(4096, device=0, stream=2) != here
    assert final.source.counts(1)["reserved"] == 0
    final.allocate(4096, device=1, stream=1)
    assert final.source.counts(1)["reserved"] == 2 * MIB


def test_exhausted_memory_is_waited_for_before_it_is_an_error(
    modules: Callable[[str], Any],
) -> None:
    final = Host(modules("p4_final"), capacity=20 * MIB)
    pointer = final.allocate(16 * MIB, stream=1)
    final.source.enqueue(0, 2)
    final.record_stream(pointer, 2)
    final.free(pointer)
    assert final.allocate(16 * MIB, stream=3)  # another heap: waits, returns the segment, grows
    assert final.source.counts()["event_waits"] > 0
    with pytest.raises(final.module.OutOfMemory, match="asked for 16777216 B"):
        final.allocate(16 * MIB, stream=3)


def test_a_limit_holds_and_a_trim_returns(final: Host) -> None:
    final.set_limit(0, 30 * MIB)
    held = final.allocate(16 * MIB)
    with pytest.raises(final.module.OutOfMemory, match="limit 31457280"):
        final.allocate(16 * MIB)
    final.free(held)
    final.trim(keep=16 * MIB)
    assert final.source.counts()["reserved"] == 16 * MIB
    final.trim()
    assert final.source.counts()["reserved"] == 0


def test_pointers_that_are_not_live_are_refused(final: Host) -> None:
    pointer, kept = final.allocate(4096), final.allocate(4096)
    ticket = final.ticket(pointer)
    final.free(pointer)
    invalid = final.module.InvalidPointer
    for bad, why in {
        pointer: "already freed",
        kept + 512: "inside a live allocation",
        kept + 65536: "inside free memory",
        0x1234: "did not hand out",
    }.items():
        with pytest.raises(invalid, match=why):
            final.free(bad)
    assert final.allocate(4096) == pointer
    with pytest.raises(invalid, match="ticket"):
        final.free_ticket(pointer, ticket)
    with pytest.raises(ValueError, match="device: expected 0 to 15, got 99"):
        final.allocate(1, device=99)


@pytest.mark.parametrize("size", [2**46 + 1, 2**63, 2**64 - 1])
def test_absurd_sizes_are_out_of_memory(final: Host, size: int) -> None:
    with pytest.raises(final.module.OutOfMemory):
        final.allocate(size)
    assert final.statistics()["allocations"] == 0


# The state machine: whatever is done in whatever order, the same things hold after every step.


class States(RuleBasedStateMachine):
    """Single actions, which shrink well, and bursts of random ones, which go far."""

    module: Any = None
    total = 0

    @initialize(mib=st.sampled_from([24, 64, 256]))
    def begin(self, mib: int) -> None:
        self.states = self.module.StateCheck(mib * MIB)

    @rule(size=st.integers(1, 40 * MIB) | st.integers(1, 4 * KIB), stream=st.integers(0, 2))
    def allocate(self, size: int, stream: int) -> None:
        self.states.allocate(size, stream)

    @rule(index=st.integers(0, 1000), ticket=st.booleans())
    def free(self, index: int, ticket: bool) -> None:
        self.states.free(index, ticket)

    @rule(index=st.integers(0, 1000), stream=st.integers(0, 2))
    def record(self, index: int, stream: int) -> None:
        self.states.record(index, stream)

    @rule(stream=st.integers(0, 2), count=st.integers(1, 5))
    def complete(self, stream: int, count: int) -> None:
        self.states.complete(stream, count)

    @rule(keep=st.integers(0, 64 * MIB))
    def trim(self, keep: int) -> None:
        self.states.trim(keep)

    @rule(limit=st.integers(0, 256 * MIB))
    def set_limit(self, limit: int) -> None:
        self.states.set_limit(limit)

    @rule(count=st.integers(0, 3))
    def fail_driver(self, count: int) -> None:
        self.states.fail_driver(count)

    @rule(index=st.integers(0, 1000))
    def misuse(self, index: int) -> None:
        self.states.misuse(index)

    @rule(seed=st.integers(0, 2**32), log2=st.integers(9, 26))
    def burst(self, seed: int, log2: int) -> None:
        self.states.burst(seed, 200, log2)

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "states"):
            self.states.check()

    def teardown(self) -> None:
        if hasattr(self, "states"):
            self.states.drain()
            States.total += self.states.operations


def test_every_state_holds(modules: Callable[[str], Any]) -> None:
    States.module = modules("p4_final")
    States.total = 0
    machine: Any = States.TestCase
    machine.settings = settings(
        max_examples=3000 if LONG else 400,
        stateful_step_count=50,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    machine().runTest()
    # Of bursts alone; the single actions come on top.
    assert States.total > (1_000_000 if LONG else 100_000)


def test_a_hundred_thousand_operations_hold(modules: Callable[[str], Any]) -> None:
    module = modules("p4_final")
    done = 0
    for seed in range(2000 if LONG else 200):
        states = module.StateCheck(256 * MIB)
        states.burst(seed, 500, 10 + seed % 17)
        states.drain()
        done += states.operations
    assert done >= (1_000_000 if LONG else 100_000)


# The native tests, and allocators with a fault put in, which they must find.

NATIVE = ROOT / "tests" / "native"


def native(program: str, out: Path, *flags: str, folder: Path = ROOT) -> Path:
    """Build a native test over p4_final with the host's compiler."""
    source = folder / "tests" / "native" / f"{program}.cpp"
    command = [find_toolchain().cxx, "-std=c++17", "-g", "-Wall", "-Wextra", "-pthread", *flags]
    command += [str(source), str(folder / "allocator" / "p4_final.cpp"), "-o", str(out)]
    subprocess.run(command, check=True)
    return out


def ran(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_states_under_address_sanitizer(tmp_path: Path) -> None:
    flags = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = ran(native("allocator_states", tmp_path / "states", *flags), "20000", "1")
    assert done.returncode == 0, done.stdout + done.stderr


def test_threads_under_thread_sanitizer(tmp_path: Path) -> None:
    done = ran(native("allocator_threads", tmp_path / "threads", "-O1", "-fsanitize=thread"))
    assert done.returncode == 0, done.stdout + done.stderr


FAULTS = {
    "the event is not waited for": (
        *("p4_final.cpp", "if (!block->users.empty()) {", "if (false) {"),
        "no reuse before the event",
    ),
    "batches are let go at once": (
        *("waiting_room.h", "return batch.events.empty();", "return true;"),
        "",
    ),
    "neighbours are not merged": (
        *("pool.h", "before != nullptr && before->state == BlockState::kFree", "false"),
        "",
    ),
    "the front is not flushed before the pool grows": (
        *("p4_final.cpp", "    heap.front.flush();\n    if (Block*", "    if (Block*"),
        "reuse of a free block that fits",
    ),
    "the rest of a block is lost": (
        *("pool.h", "second->after = block->after;", "second->after = nullptr;"),
        "",
    ),
    "the address of a block is not taken out": (
        *("pool.h", "arena_.table.erase(after);", ""),
        "",
    ),
    "tickets are not looked at": (
        *("p4_final.cpp", "ticket != nullptr && *ticket", "false && *ticket"),
        "a stale ticket refused",
    ),
    "the limit is not kept": (
        *("pool.h", "bytes > arena_.limit || arena_.reserved() > arena_.limit - bytes", "false"),
        "growth within the limit",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(tmp_path: Path, fault: str) -> None:
    name, old, new, told = FAULTS[fault]
    shutil.copytree(ROOT / "allocator", tmp_path / "allocator")
    shutil.copytree(NATIVE, tmp_path / "tests" / "native")
    path = tmp_path / "allocator" / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    program = native("allocator_states", tmp_path / "states", "-O1", folder=tmp_path)
    done = ran("timeout", "60", program, "50000", "1")
    assert done.returncode != 0
    assert told in done.stdout


# The runner and the workload.


def tape(*rows: tuple[int, int, int, int]) -> np.ndarray:
    return np.array(rows, np.uint64)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(3, 0, 1, 0)], "operation 0: expected kind 0, 1 or 2, got 3"),
        ([(0, 0, 1, 1)], "operation 0: expected a stream below 1, got 1"),
        ([(0, 0, 1, 0), (0, 0, 1, 0)], "operation 1: expected an empty slot"),
        ([(1, 0, 0, 0)], "operation 0: expected a slot in use"),
        ([(0, 0, 0, 0)], "operation 0: expected at least one byte"),
        ([(0, 0, 1, 0)], "expected every allocation freed at its end, got 1 left"),
    ],
)
def test_a_tape_that_makes_no_sense_is_refused(
    final: Host, rows: list[tuple[int, int, int, int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        final.module.Runner(final.own, [tape(*rows)], [0])


def test_the_runner_counts_what_a_tape_asks_for(final: Host) -> None:
    rows = tape(
        (0, 0, 1000, 0), (0, 1, 500, 0), (1, 0, 0, 0), (0, 0, 100, 0), (1, 1, 0, 0), (1, 0, 0, 0)
    )
    runner = final.module.Runner(final.own, [rows, rows], [0])
    assert runner.operations == 6
    assert 1500 <= runner.check(False) <= 3000
    assert runner.run(3) > 0
    p50, p99, p999, longest = runner.latencies(100)
    assert 0 < p50 <= p99 <= p999 <= longest * 1.05
    assert final.statistics()["allocations"] == 2 * 3 * (1 + 3 + 100)


@pytest.mark.parametrize("name", QUICKLY_DRAWN)
def test_every_pattern_frees_what_it_allocates(final: Host, name: str) -> None:
    pattern = PATTERNS.PATTERNS[name]()
    final.module.Runner(final.own, pattern.tapes, list(range(pattern.streams)))
    again = PATTERNS.PATTERNS[name]()
    assert all(np.array_equal(a, b) for a, b in zip(pattern.tapes, again.tapes, strict=True))


def test_rmm_random_keeps_its_parameters() -> None:
    (rows,) = PATTERNS.PATTERNS["rmm_1000_64mib"]().tapes
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
def test_the_workload_measures_every_allocator(modules: Callable[[str], Any], name: str) -> None:
    module = modules(name)
    pattern = PATTERNS.PATTERNS["varying_sizes"]()
    told = WORKLOAD.Told.CALLS | WORKLOAD.Told.MEMORY | WORKLOAD.Told.LATENCIES
    operation = WORKLOAD.FromCpp(module, pattern, told, source=lambda: module.HostSource(GPU_BYTES))
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
def test_phases_in_python_call_the_driver_as_those_in_cpp(
    modules: Callable[[str], Any], phase: int
) -> None:
    seed = STUDY.variant(f"seed_p{phase}")
    compiled = ALLOCATORS[phase]
    for name in (str(case["pattern"]) for case in STUDY.variant(compiled).cases):
        pattern = PATTERNS.PATTERNS[name]()
        driver = CountingDriver()
        memory = load_module(Path(), STUDY, seed).Memory(driver)
        operation = WORKLOAD.FromPython(
            pattern,
            lambda memory=memory: WORKLOAD.RawCalls(
                lambda size: WORKLOAD.Storage(memory, size), lambda held: None
            ),
        )
        operation.launch(0)
        assert operation.check() is None
        host = Host(modules(compiled))
        host.module.Runner(host.own, pattern.tapes, [0]).run(1)
        assert driver.calls == sum(host.calls), name


def test_memory_handed_out_twice_is_a_fault() -> None:
    pattern = PATTERNS.PATTERNS["same_size"]()
    calls = WORKLOAD.RawCalls(lambda size: 4096, lambda held: None)
    operation = WORKLOAD.FromPython(pattern, lambda: calls)
    operation.launch(0)
    assert "live allocation" in operation.check()


def test_a_trace_nobody_recorded_is_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(PATTERNS, "TRACES", tmp_path)
    workload = WORKLOAD.Workload({}, np.random.default_rng(0))
    with pytest.raises(Skip, match="not recorded"):
        workload.prepare(Case({"pattern": "trace_cnn_training"}, 0, "default"))


def recorder() -> Any:
    spec = importlib.util.spec_from_file_location("record", ROOT / "allocator/record_traces.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def block(address: int, size: int, state: str = "active_allocated") -> dict[str, Any]:
    return {"address": address, "requested_size": size, "size": 512, "state": state}


def event(action: str, address: int, size: int = 0) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size}


def test_a_recording_is_read_back_as_it_was_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = recorder()
    segments = [{"blocks": [block(4096, 100), block(8192, 1, "inactive")]}]
    events = [
        *(event("alloc", 8192, 300), event("segment_alloc", 1, 2), event("free_requested", 4096)),
        *(event("free_completed", 4096), event("alloc", 4096, 7), event("free_requested", 4096)),
    ]
    (tmp_path / "traces").mkdir()
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    digest = record.write("cnn_training", record.rows(segments, events))
    assert record.write("cnn_training", record.rows(segments, events)) == digest
    monkeypatch.setattr(PATTERNS, "TRACES", tmp_path / "traces")
    monkeypatch.setitem(PATTERNS.SHA256, "cnn_training", digest)
    (rows,) = PATTERNS.PATTERNS["trace_cnn_training"]().tapes
    assert rows[:, :3].tolist() == [
        *([0, 0, 100], [0, 1, 300], [1, 0, 0], [0, 0, 7], [1, 0, 0], [1, 1, 0])
    ]
    monkeypatch.setitem(PATTERNS.SHA256, "cnn_training", "another")
    with pytest.raises(ValueError, match="digest"):
        PATTERNS.PATTERNS["trace_cnn_training"]()


def test_a_recording_that_frees_the_unknown_is_refused() -> None:
    record = recorder()
    with pytest.raises(record.RecordingError, match="0x1000"):
        list(record.rows([], [event("free_requested", 4096)]))


def test_a_trace_becomes_a_tape(final: Host) -> None:
    lines = [
        "action,allocation,bytes",
        "allocate,7,1000",
        "allocate,8,2000",
        "free,7,",
        "allocate,9,5",
    ]
    rows = PATTERNS.replayable(PATTERNS.read_trace(lines))
    final.module.Runner(final.own, [rows], [0])
    assert rows.tolist() == [
        [0, 0, 1000, 0],
        [0, 1, 2000, 0],
        [1, 0, 0, 0],
        [0, 0, 5, 0],
        [1, 0, 0, 0],
        [1, 1, 0, 0],
    ]
