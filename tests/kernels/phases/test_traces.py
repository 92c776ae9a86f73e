"""Traces of PyTorch's allocator: recorded, read back, replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from allocator.lib import patterns, record_traces, recorded
from allocator.lib.snapshot import SnapshotError
from analysis.measure.cell import Skip
from analysis.study import Case
from tests.kernels.phases.modules import Host, workload


def test_a_trace_nobody_recorded_is_skipped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(patterns, "TRACES", tmp_path)
    work = workload.Workload({}, np.random.default_rng(0))
    with pytest.raises(Skip, match="not recorded"):
        work.prepare(Case({"pattern": "trace_cnn_training"}, 0, "default"))


def block(address: int, size: int, state: str = "active_allocated") -> dict[str, Any]:
    return {"address": address, "requested_size": size, "size": 512, "state": state}


def event(action: str, address: int, size: int = 0) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size}


def test_a_recording_is_read_back_as_it_was_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    segments = [{"blocks": [block(4096, 100), block(8192, 1, "inactive")]}]
    events = [
        *(event("alloc", 8192, 300), event("segment_alloc", 1, 2), event("free_requested", 4096)),
        *(event("free_completed", 4096), event("alloc", 4096, 7), event("free_requested", 4096)),
    ]
    (tmp_path / "traces").mkdir()
    monkeypatch.setattr(record_traces, "FOLDER", tmp_path)
    digest = record_traces.write("cnn_training", record_traces.rows(segments, events))
    assert record_traces.write("cnn_training", record_traces.rows(segments, events)) == digest
    monkeypatch.setattr(patterns, "TRACES", tmp_path / "traces")
    monkeypatch.setitem(recorded.SHA256, "cnn_training", digest)
    (rows,) = patterns.PATTERNS["trace_cnn_training"]().tapes
    assert rows[:, :3].tolist() == [
        *([0, 0, 100], [0, 1, 300], [1, 0, 0], [0, 0, 7], [1, 0, 0], [1, 1, 0])
    ]
    monkeypatch.setitem(recorded.SHA256, "cnn_training", "another")
    with pytest.raises(ValueError, match="digest"):
        patterns.PATTERNS["trace_cnn_training"]()


def test_a_recording_that_frees_the_unknown_is_refused() -> None:
    free = event("free_requested", 4096)
    for events in ([free], [event("alloc", 4096, 300), free, free]):
        with pytest.raises(SnapshotError, match="0x1000"):
            list(record_traces.rows([], events))


def test_a_trace_becomes_a_tape(final: Host) -> None:
    lines = [
        "action,allocation,bytes",
        "allocate,7,1000",
        "allocate,8,2000",
        "free,7,",
        "allocate,9,5",
    ]
    rows = patterns.replayable(patterns.read_trace(lines))
    final.module.Runner(final.allocator, [rows], [0])
    assert rows.tolist() == [
        [0, 0, 1000, 0],
        [0, 1, 2000, 0],
        [1, 0, 0, 0],
        [0, 0, 5, 0],
        [1, 0, 0, 0],
        [1, 1, 0, 0],
    ]
