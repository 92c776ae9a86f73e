"""Files as NVBench writes them with `--jsonbin`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

TIME = "nv/cold/time/gpu/"


def write_nvbench(path: Path, rows: Mapping[tuple[str, str], Sequence[float]]) -> None:
    """A file with the samples of each benchmark and case."""
    states: dict[str, list[dict[str, Any]]] = {}
    folder = path.with_name(f"{path.name}-bin")
    folder.mkdir(exist_ok=True)
    for number, ((name, case), samples) in enumerate(rows.items()):
        file = folder / f"{number}.bin"
        np.asarray(samples, "<f4").tofile(file)
        values = [
            {"name": "filename", "type": "string", "value": f"{folder.name}/{file.name}"},
            {"name": "size", "type": "int64", "value": str(len(samples))},
        ]
        state = {
            "name": f"Device=0 case={case}",
            "device": 0,
            "type_config_index": 0,
            "axis_values": [{"name": "case", "type": "string", "value": case}],
            "summaries": [
                *_summaries(samples),
                {"tag": "nv/json/bin:nv/cold/sample_times", "data": values},
            ],
            "is_skipped": False,
        }
        states.setdefault(name, []).append(state)
    axis = {"name": "case", "type": "string", "flags": "", "values": []}
    document = {
        "meta": {"argv": ["trial"]},
        "devices": [{"id": 0, "name": "GPU"}],
        "benchmarks": [
            {"name": name, "index": index, "devices": [0], "axes": [axis], "states": of_name}
            for index, (name, of_name) in enumerate(states.items())
        ],
    }
    path.write_text(json.dumps(document))


def _summaries(samples: Sequence[float]) -> list[dict[str, Any]]:
    q1, median, q3 = np.quantile(samples, (0.25, 0.5, 0.75))
    values = {
        "mean": np.mean(samples),
        "stdev/relative": np.std(samples) / np.mean(samples),
        "median": median,
        "iqr/absolute": q3 - q1,
        "iqr/relative": (q3 - q1) / median,
    }
    return [
        {
            "tag": f"{TIME}{name}",
            "data": [{"name": "value", "type": "float64", "value": repr(float(value))}],
        }
        for name, value in values.items()
    ]
