"""NVBench files for the trial: runs of this project's results in NVBench's form, and copies with a
planted slow-down."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

TIME: Final = "nv/cold/time/gpu/"
RELATIVE: Final = "relative"
AXIS: Final = "case"
CLOCK_HZ: Final = 1.98e9


def write_nvbench(path: Path, rows: Mapping[tuple[str, str], Sequence[float]]) -> None:
    """A file as NVBench writes it with `--jsonbin`, with the samples of each benchmark and case."""
    states: dict[str, list[dict[str, Any]]] = {}
    for number, ((name, case), samples) in enumerate(rows.items()):
        clocks = np.full(len(samples), CLOCK_HZ)
        for kind, values in (("bin", samples), ("freqs-bin", clocks)):
            folder = path.with_name(f"{path.name}-{kind}")
            folder.mkdir(exist_ok=True)
            np.asarray(values, "<f4").tofile(folder / f"{number}.bin")
        summaries = [
            *(_summary(f"{TIME}{tag}", value) for tag, value in _statistics(samples).items()),
            _summary("nv/cold/sm_clock_rate/mean", CLOCK_HZ),
            _file(path, "bin", "sample_times", number, len(samples)),
            _file(path, "freqs-bin", "sample_freqs", number, len(samples)),
        ]
        state = {
            "name": f"Device=0 {AXIS}={case}",
            "device": 0,
            "type_config_index": 0,
            "axis_values": [{"name": AXIS, "type": "string", "value": case}],
            "summaries": summaries,
            "is_skipped": False,
        }
        states.setdefault(name, []).append(state)
    axis = {"name": AXIS, "type": "string", "flags": "", "values": []}
    version = {"major": 1, "minor": 0, "patch": 0, "string": "1.0.0"}
    document = {
        "meta": {"argv": ["trial"], "version": {"json": version}},
        "devices": [{"id": 0, "name": "GPU"}],
        "benchmarks": [
            {"name": name, "index": index, "devices": [0], "axes": [axis], "states": of_name}
            for index, (name, of_name) in enumerate(states.items())
        ],
    }
    path.write_text(json.dumps(document))


def _statistics(samples: Sequence[float]) -> dict[str, float]:
    q1, median, q3 = np.quantile(samples, (0.25, 0.5, 0.75))
    mean = np.mean(samples)
    deviation = np.std(samples, ddof=1) if len(samples) > 1 else np.inf
    found = {
        "min": np.min(samples),
        "max": np.max(samples),
        "mean": mean,
        "stdev/absolute": deviation,
        "stdev/relative": deviation / mean,
        "q1": q1,
        "median": median,
        "q3": q3,
        "iqr/absolute": q3 - q1,
        "iqr/relative": (q3 - q1) / median,
    }
    return {tag: float(value) for tag, value in found.items()}


def _summary(tag: str, value: float) -> dict[str, Any]:
    return {"tag": tag, "data": [{"name": "value", "type": "float64", "value": repr(value)}]}


def _file(path: Path, kind: str, what: str, number: int, size: int) -> dict[str, Any]:
    name = f"{path.name}-{kind}/{number}.bin"
    return {
        "tag": f"nv/json/{kind}:nv/cold/{what}",
        "data": [
            {"name": "filename", "type": "string", "value": name},
            {"name": "size", "type": "int64", "value": str(size)},
        ],
    }


def plant(path: Path, out: Path, slow_down: float, rows: Collection[tuple[str, str]]) -> None:
    """A copy of a file in which `rows`, by benchmark and axes, take longer by the share
    `slow_down`: every sample and every summary of their device times."""
    document = json.loads(path.read_text())
    for kind in ("bin", "freqs-bin"):
        out.with_name(f"{out.name}-{kind}").mkdir(exist_ok=True)
    for benchmark in document["benchmarks"]:
        for state in benchmark["states"]:
            axes = [f"{axis['name']}={axis['value']}" for axis in state["axis_values"] or []]
            is_slow = (benchmark["name"], " ".join(axes)) in rows
            for summary in state["summaries"]:
                data = {value["name"]: value for value in summary["data"]}
                tag = summary["tag"]
                if "filename" in data:
                    source = path.parent.joinpath(*Path(data["filename"]["value"]).parts[-2:])
                    kind = tag.partition(":")[0].rpartition("/")[2]
                    target = out.with_name(f"{out.name}-{kind}") / source.name
                    values = np.fromfile(source, "<f4")
                    slower = 1 + slow_down if is_slow and kind == "bin" else 1
                    (values * np.float32(slower)).astype("<f4").tofile(target)
                    data["filename"]["value"] = f"{target.parent.name}/{target.name}"
                elif is_slow and tag.startswith(TIME) and not tag.endswith(RELATIVE):
                    value = data["value"]
                    value["value"] = repr(float(value["value"]) * (1 + slow_down))
    out.write_text(json.dumps(document))
