"""Files as NVBench writes them with `--jsonbin`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

GPU_TIME = "nv/cold/time/gpu"


def summaries(values: Mapping[str, object], tag: str = GPU_TIME) -> list[dict[str, Any]]:
    """Summaries with these values, below a tag."""
    return [
        {"tag": f"{tag}/{name}", "data": [{"name": "value", "type": "float64", "value": f"{one}"}]}
        for name, one in values.items()
    ]


def write_nvbench(
    path: Path, rows: Mapping[tuple[str, str], Sequence[float]], program: str = "trial"
) -> None:
    """A file of a program with the samples of each benchmark and case."""
    benchmarks: dict[str, list[dict[str, Any]]] = {}
    folder = path.with_name(f"{path.name}-bin")
    folder.mkdir(exist_ok=True)
    for number, ((name, case), samples) in enumerate(rows.items()):
        np.asarray(samples, "<f4").tofile(folder / f"{number}.bin")
        q1, median, q3 = np.quantile(samples, (0.25, 0.5, 0.75))
        values = {"mean": np.mean(samples), "median": median, "iqr/relative": (q3 - q1) / median}
        about = {"filename": f"{folder.name}/{number}.bin", "size": str(len(samples))}
        data = [{"name": key, "type": "string", "value": value} for key, value in about.items()]
        state = {"name": f"Device=0 case={case}", "device": 0, "is_skipped": False}
        state["axis_values"] = [{"name": "case", "type": "string", "value": case}]
        samples_of = {"tag": "nv/json/bin:nv/cold/sample_times", "data": data}
        state["summaries"] = [*summaries(values), samples_of]
        benchmarks.setdefault(name, []).append(state)
    document = {"meta": {"argv": [program]}, "devices": [{"id": 0, "name": "GPU"}]}
    listed = [{"name": name, "states": states} for name, states in benchmarks.items()]
    path.write_text(json.dumps(document | {"benchmarks": listed}))
