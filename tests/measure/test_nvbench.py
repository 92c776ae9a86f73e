"""Device times from NVBench, reports of Nsight Compute, and timelines of CUPTI."""

import math
import os
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from cuda.bench.results import BenchmarkResult

from analysis.base.errors import HotpathError
from analysis.measure import nvbench
from analysis.measure.cell import Cell, Operation, PythonLauncher
from analysis.measure.nvbench import run_under_nvbench
from analysis.measure.profile import ncu
from tests.repository import STUDIES
from tests.synthetic import COPY

WARPS = COPY.variant("warps")
REPORT = Path(__file__).with_name("h100_gather.ncu.csv").read_text()
"""Of Nsight Compute on variants of the gather."""


def test_device_times_are_assigned_to_their_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [Cell(WARPS, case) for case in WARPS.cases[:4]]
    cells[0].values.append(("host_time", 3e-5))
    cells[3].sm_mhz = 1500.0
    states = [  # in any order
        Mock(point={"cell": f"{n}"}, samples=times, frequencies=clocks, is_skipped=n == 1)
        for n, times, clocks in (
            (2, [5e-6], [1.98e9]),
            (1, [9.0], [9e8]),
            (3, None, []),
            (0, [1e-5, 2e-5, 4e-5, 3e-5], [math.nan, 1.2e9, 1.9804e9, 1.9806e9]),
        )
    ]
    document = Mock(subbenches={"cells": states})
    monkeypatch.setattr(BenchmarkResult, "from_json", lambda file: document)
    nvbench.add_device_times(cells, Path("round-00.nvbench.json"))
    times = [("gpu_time", seconds) for seconds in (1e-5, 2e-5, 4e-5, 3e-5)]
    assert cells[0].values == [("host_time", 3e-5), *times]
    assert cells[2].values == [("gpu_time", 5e-6)]
    assert cells[1].values == cells[3].values == []
    assert [cell.sm_mhz for cell in cells] == [1980, None, 1980, 1500.0]


def fake_nvbench(events: list[str]) -> Any:
    """NVBench as far as run_under_nvbench uses it: a warm-up and one sample of a single cell."""
    state, bench = MagicMock(), MagicMock()
    state.get_int64.return_value = 0
    timer = Mock(start=lambda: events.append("start"), stop=lambda: events.append("stop"))

    def execute(launch: Any, *, timer_: Any = timer, sync: bool, **settings: bool) -> None:
        assert settings == {"timer": True, "batched": False}
        events.append("not held" if sync else "held")
        for _ in range(2):
            launch(None, timer_)

    state.exec = execute
    bench.run_all_benchmarks = lambda arguments: bench.register.call_args.args[0](state)
    return bench


@pytest.mark.parametrize("has_reset", [False, True])
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_a_stream_is_held_after_the_reset_and_for_a_while_after_the_launch(
    monkeypatch: pytest.MonkeyPatch, has_reset: bool, waits: bool, count: int
) -> None:
    """The check has already warmed up a long operation, of which only one time is taken."""
    events: list[str] = []
    monkeypatch.setattr(nvbench, "bench", fake_nvbench(events))
    monkeypatch.setattr(nvbench, "spin", lambda seconds: events.append("spin"))
    monkeypatch.setattr(nvbench, "add_device_times", lambda cells, file: None)
    monkeypatch.setattr(Operation, "__abstractmethods__", frozenset())
    operation = Operation()  # type: ignore[abstract]
    operation.launcher = PythonLauncher(lambda stream: events.append("launch"))
    operation.waits = waits
    operation.reset = (lambda stream: events.append("reset")) if has_reset else None
    run_under_nvbench(
        [Cell(WARPS, WARPS.cases[0])],
        lambda _, stream, time_device: time_device(operation, count),
        Mock(side_effect=AssertionError),
        Path("out"),
    )
    reset, spin = ["reset"] * has_reset, ["spin"] * (not waits)
    sample = [*reset, "start", "launch", *spin, "stop"]
    warm_up = [*reset, "start", "stop"] if count == 1 else sample
    assert events == ["not held" if waits else "held", *warm_up, *sample]


CASES = dict.fromkeys(STUDIES["h2d_gather"].variant_names, "bs=1")


def values(text: str) -> dict[str, dict[str, float]]:
    """Counters by variant and metric."""
    found: dict[str, dict[str, float]] = {}
    for counter in ncu.parse(text, CASES):
        assert counter.case == "bs=1"
        found.setdefault(counter.variant, {})[counter.metric] = counter.value
    return found


def test_a_report_of_the_profiler_is_read_as_far_as_it_has_values() -> None:
    found = values(REPORT)
    assert found and set(found) <= set(CASES)
    for counted in found.values():
        assert counted["gpu__time_duration.sum"] > 0
        assert counted["launch__registers_per_thread"].is_integer()
        assert set(counted) <= set(ncu.METRICS)
    lines = REPORT.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    header, units, row, *_ = lines[start:]
    fields = row.split('","')
    fields[header.split('","').index("dram__bytes_read.sum")] = "n/a"
    (variant, counted), *_ = found.items()
    left = values("\n".join([header, units, '","'.join(fields)]))[variant]
    assert set(counted) - set(left) == {"dram__bytes_read.sum"}
    with pytest.raises(HotpathError, match=r"ncu: expected \d+ fields, got \d+"):
        values("\n".join([header, units, row[: len(row) // 2].rpartition(",")[0]]))
    with pytest.raises(HotpathError, match="no table of counters"):
        values("==PROF== Connected to process 1\n")
    assert values("==PROF== Connected\n==WARNING== No kernels were profiled.\n") == {}


LISTING = "[ \"$1\" = --query-metrics ] && echo 'dram__bytes_read x' && exit"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo '==ERROR== ERR_NVGPUCTRPERM'; exit 1", "ncu: ERR_NVGPUCTRPERM"),
        ("echo cannot open; exit 9", "ncu: cannot open"),
        ("exit 3", "ncu: exit code 3"),
        (f"{LISTING}\necho '==ERROR== No permission'", "ncu: No permission"),
        (LISTING, ""),
    ],
)
def test_the_metrics_of_this_gpu_are_asked_for_and_an_error_has_the_words_of_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str
) -> None:
    (tmp_path / "ncu").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    if said:
        with pytest.raises(HotpathError, match=f"^{said}$"):
            ncu.capture(["true"])
        return
    known = ncu.known_metrics()
    counted = [metric for metric in known if not metric.startswith("launch__")]
    assert counted == ["dram__bytes_read.sum"] and "launch__grid_size" in known
