"""What happens around each device time, and the assignment of NVBench's samples to cells."""

from __future__ import annotations

import array
import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from analysis.measure import nvbench
from analysis.measure.cell import Cell, Operation, PythonLauncher
from analysis.measure.nvbench import add_device_times, run_under_nvbench
from tests.synthetic import COPY


def binary(folder: Path, name: str, tag: str, values: list[float]) -> dict[str, Any]:
    """A summary of NVBench's JSON and the file of 32-bit floats it points to."""
    (folder / name).write_bytes(array.array("f", values).tobytes())
    data = [
        {"name": "filename", "type": "string", "value": str(folder / name)},
        {"name": "size", "type": "int64", "value": str(len(values))},
    ]
    return {"tag": tag, "name": tag, "hide": "Not needed in table.", "data": data}


def state(folder: Path, cell: int, times: list[float], clocks: list[float]) -> dict[str, Any]:
    summaries = [
        binary(folder, f"{cell}.bin", "nv/json/bin:nv/cold/sample_times", times),
        binary(folder, f"{cell}-freqs.bin", "nv/json/freqs-bin:nv/cold/sample_freqs", clocks),
    ]
    return {
        "name": f"Device=0 cell={cell}",
        "device": 0,
        "type_config_index": 0,
        "axis_values": [{"name": "cell", "type": "int64", "value": str(cell)}],
        "summaries": summaries,
        "is_skipped": False,
    }


def test_device_times_are_assigned_to_their_cells(tmp_path: Path) -> None:
    cells = [Cell(COPY.variant("warps"), case) for case in COPY.variant("warps").cases[:4]]
    cells[0].values.append(("host_time", 3e-5))
    cells[3].sm_mhz = 1500.0
    left_out = {**state(tmp_path, 1, [9.0], [9e8]), "is_skipped": True, "skip_reason": "wrong"}
    unsampled = {**state(tmp_path, 3, [], []), "summaries": []}
    axis = {
        "name": "cell",
        "type": "int64",
        "flags": "",
        "values": [{"input_string": str(n), "description": "", "value": n} for n in range(4)],
    }
    document = {
        "devices": [{"id": 0, "name": "NVIDIA H200"}],
        "benchmarks": [
            {
                "name": "cells",
                "index": 0,
                "devices": [0],
                "axes": [axis],
                # NVBench may run them in any order; the axis identifies them.
                "states": [
                    state(tmp_path, 2, [5e-6], [1.98e9]),
                    left_out,
                    unsampled,
                    state(
                        tmp_path, 0, [1e-5, 2e-5, 4e-5, 3e-5], [math.nan, 1.2e9, 1.9804e9, 1.9806e9]
                    ),
                ],
            }
        ],
    }
    file = tmp_path / "round-00.nvbench.json"
    file.write_text(json.dumps(document))
    add_device_times(cells, file)
    assert cells[0].values[0] == ("host_time", 3e-5)
    assert [metric for metric, _ in cells[0].values[1:]] == ["gpu_time"] * 4
    assert [value for _, value in cells[0].values[1:]] == pytest.approx([1e-5, 2e-5, 4e-5, 3e-5])
    assert [value for _, value in cells[2].values] == pytest.approx([5e-6])
    assert cells[1].values == cells[3].values == []
    assert [cell.sm_mhz for cell in cells] == [1980, None, 1980, 1500.0]


class FakeNvbench:
    """NVBench as far as run_under_nvbench uses it: a warm-up and one sample of a single cell."""

    def __init__(self, events: list[str]) -> None:
        self.events = events
        self.run_cell: Callable[[Any], None] | None = None

    def register(self, run_cell: Callable[[Any], None]) -> Any:
        self.run_cell = run_cell
        return self

    def set_name(self, name: str) -> Any:
        return self

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *settings: None

    def get_int64(self, axis: str) -> int:
        return 0

    def get_stream(self) -> Any:
        return SimpleNamespace(addressof=lambda: 7)

    def exec(self, launch: Any, *, timer: bool, sync: bool, batched: bool) -> None:
        assert timer and not batched
        self.events.append("not held" if sync else "held")
        timed = SimpleNamespace(
            start=lambda: self.events.append("start"), stop=lambda: self.events.append("stop")
        )
        for _ in range(2):
            launch(None, timed)

    def run_all_benchmarks(self, arguments: list[str]) -> None:
        assert self.run_cell is not None
        self.run_cell(self)


class Noted(Operation):
    def __init__(self, events: list[str], has_reset: bool, waits: bool) -> None:
        self.launcher = PythonLauncher(lambda stream: events.append("launch"))
        self.waits = waits
        if has_reset:
            self.reset = lambda stream: events.append("reset")

    def poison(self) -> None:
        raise AssertionError

    def check(self) -> str | None:
        raise AssertionError


def fail(error: BaseException) -> NoReturn:
    raise error


@pytest.mark.parametrize("has_reset", [False, True])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_a_stream_is_held_after_the_reset_and_for_a_while_after_the_launch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_reset: bool, waits: bool, count: int
) -> None:
    """The check has already warmed up a long operation, of which only one time is taken."""
    events: list[str] = []
    monkeypatch.setattr(nvbench, "bench", FakeNvbench(events))
    monkeypatch.setattr(nvbench, "spin", lambda seconds: events.append("spin"))
    monkeypatch.setattr(nvbench, "add_device_times", lambda cells, file: None)
    operation = Noted(events, has_reset, waits)
    cell = Cell(COPY.variant("warps"), COPY.variant("warps").cases[0])
    run_under_nvbench(
        [cell], lambda _, stream, time_device: time_device(operation, count), fail, tmp_path / "out"
    )
    reset, spin = ["reset"] * has_reset, ["spin"] * (not waits)
    sample = [*reset, "start", "launch", *spin, "stop"]
    warm_up = [*reset, "start", "stop"] if count == 1 else sample
    assert events == ["not held" if waits else "held", *warm_up, *sample]
