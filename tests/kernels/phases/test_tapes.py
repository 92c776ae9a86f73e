"""Tapes: drawn, recorded and read back, replayed, and the metrics of their replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allocator.lib import patterns, record_traces, recorded
from analysis.measure.cell import Skip
from analysis.study import Case
from tests.kernels.phases.modules import GPU_BYTES, STUDY, Host, built, workload

PATTERN = patterns.PATTERNS
MEASURED = (
    *("p0_driver", "p1_exact_cache", "p2_size_buckets", "p3_block_pool"),
    *("p4_tlsf", "p4_exact_front", "p4_final"),
)


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
    rows: list[tuple[int, int, int, int]], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Host("p4_final").replay([np.array(rows, np.uint64)])


@pytest.mark.parametrize("name", sorted(name for name in PATTERN if "_100000_" not in name))
def test_every_pattern_frees_what_it_allocates_and_comes_again(name: str) -> None:
    pattern, again = PATTERN[name](), PATTERN[name]()
    runner = Host("p4_final").replay(pattern.tapes, pattern.streams)
    assert len(pattern.tapes) == 1 or runner.check(False) > 0  # by threads at once
    assert all(np.array_equal(a, b) for a, b in zip(pattern.tapes, again.tapes, strict=True))


@pytest.mark.parametrize("name", MEASURED)
def test_the_workload_measures_every_allocator(name: str) -> None:
    module, pattern = built(name), PATTERN["varying_sizes"]()
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
    assert samples["driver_calls"][0] == (len(pattern.tapes[0]) if name == "p0_driver" else 0)


def test_memory_handed_out_twice_is_a_fault() -> None:
    calls = workload.RawCalls(lambda size: 4096, lambda held: None)
    operation = workload.PythonReplay(PATTERN["same_size"](), lambda: calls)
    operation.launch(0)
    assert "live allocation" in operation.check()


SHORT = (("A", 6), ("B", 3), ("C", 5), ("A", 0), ("C", 0), ("D", 7), ("E", 4))
"""The tape of the picture: the allocation, and its size in MiB, or 0 for a free. D fits into the
memory of A and C only where sizes are rounded or neighbours merged."""


def test_the_picture_of_blocks_has_the_calls_of_the_allocators() -> None:
    for name in (*MEASURED[:4], "p4_final"):
        host, live = Host(name), dict[str, int]()
        for what, mib in SHORT:
            if mib:
                live[what] = host.allocate(mib * 2**20)
            else:
                host.free(live.pop(what))
        for picture in STUDY.folder.glob("blocks.*.svg"):
            assert f"{name}: {sum(host.calls)} driver call" in picture.read_text(), "draw it anew"


# Traces of PyTorch's allocator.


def event(action: str, address: int, size: int = 0) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size}


def test_a_recording_is_read_back_as_it_was_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(record_traces, "FOLDER", tmp_path)
    monkeypatch.setattr(patterns, "TRACES", tmp_path / "traces")
    name = "trace_cnn_training"
    with pytest.raises(Skip, match="not recorded"):
        workload.Workload({}, np.random.default_rng(0)).prepare(Case({"pattern": name}, 0, ""))
    states = {4096: (100, "active_allocated"), 8192: (1, "inactive")}
    blocks = [
        {"address": address, "requested_size": size, "size": 512, "state": state}
        for address, (size, state) in states.items()
    ]
    events = [
        *(event("alloc", 8192, 300), event("segment_alloc", 1, 2), event("free_requested", 4096)),
        *(event("free_completed", 4096), event("alloc", 4096, 7), event("free_requested", 4096)),
    ]
    (tmp_path / "traces").mkdir()
    digest = record_traces.write("cnn_training", record_traces.rows([{"blocks": blocks}], events))
    monkeypatch.setitem(recorded.SHA256, "cnn_training", digest)
    (rows,) = PATTERN[name]().tapes
    expected = [[0, 0, 100], [0, 1, 300], [1, 0, 0], [0, 0, 7], [1, 0, 0], [1, 1, 0]]
    assert rows[:, :3].tolist() == expected
    monkeypatch.setitem(recorded.SHA256, "cnn_training", "another")
    with pytest.raises(ValueError, match="digest"):
        PATTERN[name]()
