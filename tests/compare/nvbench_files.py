"""Files as NVBench writes them with `--jsonbin`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

GPU_TIME = "nv/cold/time/gpu"


def summaries(values: Mapping[str, object], tag: str = GPU_TIME) -> list[dict[str, Any]]:
    return [
        {
            "tag": f"{tag}/{name}",
            "data": [{"name": "value", "type": "float64", "value": f"{value}"}],
        }
        for name, value in values.items()
    ]


def write_nvbench(
    path: Path, rows: Mapping[tuple[str, str], Sequence[float]], program: str = "trial"
) -> None:
    """A file of a program with the samples of each benchmark and case."""
    benchmarks: dict[str, dict[str, Any]] = {}
    folder = path.with_name(f"{path.name}-bin")
    folder.mkdir(exist_ok=True)
    for number, ((name, case), samples) in enumerate(rows.items()):
        file = folder / f"{number}.bin"
        np.asarray(samples, "<f4").tofile(file)
        q1, median, q3 = np.quantile(samples, (0.25, 0.5, 0.75))
        spread = {"stdev/relative": np.std(samples) / np.mean(samples)}
        spread |= {"iqr/absolute": q3 - q1, "iqr/relative": (q3 - q1) / median}
        about = {"filename": f"{folder.name}/{file.name}", "size": str(len(samples))}
        values = [{"name": key, "type": "string", "value": value} for key, value in about.items()]
        state = {
            "name": f"Device=0 case={case}",
            "device": 0,
            "axis_values": [{"name": "case", "type": "string", "value": case}],
            "summaries": [
                *summaries({"mean": np.mean(samples), "median": median, **spread}),
                {"tag": "nv/json/bin:nv/cold/sample_times", "data": values},
            ],
            "is_skipped": False,
        }
        benchmarks.setdefault(name, {"name": name, "states": []})["states"].append(state)
    document = {"meta": {"argv": [program]}, "devices": [{"id": 0, "name": "GPU"}]}
    path.write_text(json.dumps(document | {"benchmarks": [*benchmarks.values()]}))
