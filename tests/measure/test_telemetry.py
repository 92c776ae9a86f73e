"""Telemetry of a run, assigned to its cells."""

from __future__ import annotations

import multiprocessing
import signal
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest

from analysis.measure import telemetry
from analysis.measure.cell import Visit
from analysis.measure.telemetry import (
    CELL_COLUMNS,
    COLUMNS,
    by_variant,
    telemetry_text,
    with_clocks,
)
from tests.nvml import Device, devices, install
from tests.synthetic import CALLS, RUN, rows_of, samples_of


def at(second: float) -> str:
    return f"2026-01-02T03:04:{second:06.3f}Z"


def test_telemetry_belongs_to_the_cell_it_fell_in() -> None:
    base = samples_of(CALLS, CALLS.variant("kernel"), rounds=1)[0]
    cells = [("python", 0, 10.0), ("again", 0, 12.0), ("again", 1, 20.0), ("python", 1, 22.0)]
    visits = [Visit(at(start), RUN, number, name, base.case) for name, number, start in cells]
    rows = [[at(second), "100"] for second in (9.9, 10.0, 11.9, 12.0, 14.9, 15.0, 17.0, 20.5, 29.0)]
    found = by_variant(rows, visits, [at(15.0), at(25.0)])
    by_visit = {
        variant: [(line[2], line[1], line[3]) for line in lines] for variant, lines in found.items()
    }
    assert by_visit == {
        "python": [("0", base.case, at(10.0)), ("0", base.case, at(11.9))],
        "again": [
            ("0", base.case, at(12.0)),
            ("0", base.case, at(14.9)),
            ("1", base.case, at(20.5)),
        ],
    }
    assert by_variant(rows, [], []) == {}
    lines = telemetry_text(found).splitlines()
    assert lines[0] == ",".join((*CELL_COLUMNS, *COLUMNS))
    assert lines[1] == f"python,{base.case},0,{at(10.0)},100"


def test_every_visit_to_a_cell_has_telemetry() -> None:
    order = [("python", 10.0), ("again", 11.0), ("again", 12.0), ("python", 13.0)]
    visits = [Visit(at(start), RUN, 0, name, "n=1") for name, start in order]
    rows = [[at(second), ""] for second in (10.5, 11.5, 12.5, 13.5)]
    found = by_variant(rows, visits, [at(14.0)])
    assert [line[3] for line in found["python"]] == [at(10.5), at(13.5)]
    assert [line[3] for line in found["again"]] == [at(11.5), at(12.5)]


def seen(number: int, case: str, reason: str, mhz: int, gpu: int = 0) -> list[str]:
    """A row of telemetry in a cell."""
    values = dict.fromkeys(COLUMNS, "") | {"throttle": reason, "sm_mhz": f"{mhz}", "gpu": f"{gpu}"}
    return ["kernel", case, str(number), *values.values()]


def test_clocks_and_reasons_are_those_seen_within_the_cell() -> None:
    variant = CALLS.variant("kernel")
    (template, *_) = samples_of(CALLS, variant, rounds=1)
    samples = [
        replace(template, case=case, metric=metric, round=number, sm_mhz=600.0)
        for number, case, metric in [
            *((0, "n=1", "host_time"), (0, "n=2", "host_time"), (1, "n=2", "host_time")),
            (1, "n=1", "gpu_time"),
        ]
    ]
    samples[0] = replace(samples[0], throttle="sw_power_cap")
    rows = [
        *(seen(0, "n=2", "", mhz) for mhz in (1980, 1500, 1700)),
        *(seen(1, "n=2", reason, 1980) for reason in ("", "hw_slowdown|sync_boost", "")),
        seen(1, "n=1", "", 1980),
    ]
    clocks = [(s.throttle, s.sm_mhz) for s in with_clocks(rows_of(samples), {variant.name: rows})]
    assert clocks == [
        ("sw_power_cap", 600.0),
        ("", 1700.0),
        ("hw_slowdown|sync_boost", 1980.0),
        ("", 600.0),  # with device times, which have a measured clock
    ]


def test_the_clock_is_the_first_gpus_and_reasons_are_those_of_all() -> None:
    variant = CALLS.variant("kernel")
    (template, *_) = samples_of(CALLS, variant, rounds=1)
    sample = replace(template, case="n=1", metric="host_time", sm_mhz=600.0)
    rows = [seen(0, "n=1", "", 1980), seen(0, "n=1", "hw_slowdown", 1200, gpu=1)]
    (merged,) = with_clocks(rows_of([sample]), {variant.name: rows})
    assert (merged.throttle, merged.sm_mhz) == ("hw_slowdown", 1980.0)


def test_one_row_per_gpu_until_one_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, devices(2))
    readings = iter([100_000, 200_000, 110_000])

    def power(device: Device) -> int:
        if (found := next(readings, None)) is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return found

    for name in ("Temperature", "ClockInfo", "CurrentClocksEventReasons", "PcieThroughput"):
        monkeypatch.setattr(pynvml, f"nvmlDeviceGet{name}", lambda *_: 0)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetPowerUsage", power)
    monkeypatch.setattr(telemetry, "end_with_parent", lambda: None)
    monkeypatch.setattr(telemetry, "PERIOD_S", 0.0)
    handler = signal.getsignal(signal.SIGINT)
    stop, stopping = multiprocessing.Pipe(duplex=False)
    telemetry.record(["GPU-0", "GPU-1"], tmp_path / "rows", stop)
    stopping.close()
    signal.signal(signal.SIGINT, handler)
    rows = [line.split(",") for line in (tmp_path / "rows").read_text().splitlines()]
    powers = [(row[COLUMNS.index("power_w")], row[COLUMNS.index("gpu")]) for row in rows]
    assert powers == [("100.0", "0"), ("200.0", "1"), ("110.0", "0")]
