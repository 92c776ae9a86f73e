"""What is noted beside a run: telemetry by cell, machine names, NVBench's samples."""

from __future__ import annotations

import array
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.measure.cell import Cell
from analysis.measure.machine import slug
from analysis.measure.nvbench import add_device_times
from analysis.measure.telemetry import CELL_COLUMNS, COLUMNS, by_variant, write_telemetry
from analysis.study import discover
from tests.synthetic import RUN, samples_of

METHOD = discover()["method"]


def at(second: float) -> str:
    return f"2026-01-02T03:04:{second:06.3f}Z"


def test_telemetry_belongs_to_the_cell_it_fell_in(tmp_path: Path) -> None:
    base = samples_of(METHOD, METHOD.variant("clock"), rounds=1)[0]
    cells = [("copy_a", 0, 10.0), ("copy_b", 0, 12.0), ("copy_b", 1, 20.0), ("copy_a", 1, 22.0)]
    samples = [
        replace(base, variant=variant, round=number, started_at=at(start), sample=sample)
        for variant, number, start in cells
        for sample in range(2)
    ]
    rows = [[at(second), "100"] for second in (9.9, 10.0, 11.9, 12.0, 14.9, 15.0, 17.0, 20.5, 29.0)]
    found = by_variant(rows, samples, [at(15.0), at(25.0)])
    told = {
        variant: [(line[1], line[2], line[3]) for line in lines] for variant, lines in found.items()
    }
    assert told == {
        "copy_a": [("0", base.case, at(10.0)), ("0", base.case, at(11.9))],
        "copy_b": [
            ("0", base.case, at(12.0)),
            ("0", base.case, at(14.9)),
            ("1", base.case, at(20.5)),
        ],
    }
    assert by_variant(rows, [], []) == {}
    write_telemetry(tmp_path / "copy_a.telemetry.csv", found["copy_a"])
    lines = (tmp_path / "copy_a.telemetry.csv").read_text().splitlines()
    assert lines[0] == ",".join((*CELL_COLUMNS, *COLUMNS))
    assert lines[1] == f"{RUN},0,{base.case},{at(10.0)},100"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb-hbm3"),
        ("GeForce RTX(TM) 4090 / D ", "geforce-rtx-tm-4090-d"),
    ],
)
def test_a_machines_folder_is_named_after_its_gpu(name: str, folder: str) -> None:
    assert slug(name) == folder


@given(st.text())
def test_a_slug_is_lower_case_letters_digits_and_single_hyphens(name: str) -> None:
    assert re.fullmatch(r"([a-z0-9]+(-[a-z0-9]+)*)?", slug(name))


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


def test_device_times_go_back_into_their_cells(tmp_path: Path) -> None:
    cells = [Cell(METHOD.variant("copy_a"), case) for case in METHOD.variant("copy_a").cases[:4]]
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
                # NVBench may run them in any order; the axis says which is which.
                "states": [
                    state(tmp_path, 2, [5e-6], [1.98e9]),
                    left_out,
                    unsampled,
                    state(tmp_path, 0, [1e-5, 2e-5, 4e-5], [1.2e9, 1.9804e9, 1.9806e9]),
                ],
            }
        ],
    }
    file = tmp_path / "round-00.nvbench.json"
    file.write_text(json.dumps(document))
    add_device_times(cells, file)
    assert cells[0].values[0] == ("host_time", 3e-5)
    assert [metric for metric, _ in cells[0].values[1:]] == ["gpu_time"] * 3
    assert [value for _, value in cells[0].values[1:]] == pytest.approx([1e-5, 2e-5, 4e-5])
    assert [value for _, value in cells[2].values] == pytest.approx([5e-6])
    assert cells[1].values == cells[3].values == []
    assert [cell.sm_mhz for cell in cells] == [1980, None, 1980, 1500.0]
