"""Times in NVBench's JSON files, from samples if the file has them, else from its summaries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from pydantic import BaseModel, Field

from analysis.base import keys
from analysis.base.errors import FieldError, HotpathError, visible
from analysis.base.reading import read_bytes
from analysis.base.schema import read_json
from analysis.compare.side import Row, Run, Side, run_of

LIMIT_BYTES: Final = 64 * 2**20
SAMPLES: Final = "nv/json/bin:nv/cold/sample_times"
TIMES: Final = ("nv/cold/time/gpu", "nv/cold/time/cpu", "nv/cpu_only/time/cpu")
"""Tags of times, the preferred one first."""
NORMAL_IQR: Final = 1.349
"""Interquartile range of the normal distribution in standard deviations."""

Text = Annotated[str, Field(max_length=2000)]


class _Part(BaseModel, strict=True):
    """Base of the objects in a file. Other keys than those named are not read."""


class _Value(_Part):
    name: Text
    value: Text | float | None = None


class _Summary(_Part):
    tag: Text
    data: list[_Value] | None = None


class _State(_Part):
    name: Text
    device: int | None = None
    axis_values: list[_Value] | None = None
    summaries: list[_Summary] | None = None
    is_skipped: bool = False
    skip_reason: Text | None = None


class _Benchmark(_Part):
    name: Text
    states: list[_State] | None = None


class _Device(_Part):
    id: int
    name: Text


class _File(_Part):
    devices: list[_Device] | None = None
    benchmarks: list[_Benchmark]


def read_files(name: str, paths: Sequence[Path]) -> Side:
    """The side whose runs are these files; HotpathError names the file and the key."""
    side = Side(name)
    gpus: set[str] = set()
    for path in paths:
        file = keys.read(_File, read_json(path, LIMIT_BYTES), str(path))
        gpus |= {visible(device.name) for device in file.devices or []}
        seen: set[Row] = set()
        for row, state in _states(file):
            if row in seen:
                raise FieldError(f"{path}: {' '.join(row)}", "every state once", "it again")
            seen.add(row)
            if run := None if state.is_skipped else _run(path, state):
                side.runs.setdefault(row, []).append(run)
            else:
                side.absent[row] = visible(state.skip_reason or "no time")
    for row in side.runs:
        side.absent.pop(row, None)
    side.notes += [f"GPU: {', '.join(sorted(gpus))}"] if gpus else []
    return side


def _states(file: _File) -> Iterator[tuple[Row, _State]]:
    several = len({state.device for one in file.benchmarks for state in one.states or []}) > 1
    for benchmark in file.benchmarks:
        for state in benchmark.states or []:
            axes = [f"{axis.name}={axis.value}" for axis in state.axis_values or []]
            device = [f"device={state.device}"] if several else []
            yield tuple(map(visible, (benchmark.name, " ".join([*axes, *device])))), state


def _run(path: Path, state: _State) -> Run | None:
    """The run of a state; None if it has no time above 0."""
    found = {one.tag: {v.name: v.value for v in one.data or []} for one in state.summaries or []}
    if file := found.get(SAMPLES, {}).get("filename"):
        return run_of(_samples(path, str(file), found[SAMPLES].get("size")), str(path.resolve()))
    for tag in TIMES:
        numbers = _numbers(found, tag)
        seconds = numbers.get("median") or numbers.get("mean")
        if seconds:
            iqr = numbers.get("iqr/relative", math.nan) / NORMAL_IQR
            spread = numbers.get("stdev/relative", math.nan) if math.isnan(iqr) else iqr
            return Run(seconds, spread, str(path.resolve()))
    return None


def _numbers(found: Mapping[str, Mapping[str, Any]], tag: str) -> dict[str, float]:
    """The finite numbers above 0 of a time, by the rest of their tag."""
    numbers = {}
    for name, data in found.items():
        if name.startswith(f"{tag}/"):
            try:
                number = float(data.get("value"))  # type: ignore[arg-type]
            except (TypeError, ValueError):
                continue
            if math.isfinite(number) and number > 0:
                numbers[name.removeprefix(f"{tag}/")] = number
    return numbers


def _samples(path: Path, name: str, size: object) -> Any:
    """The samples in a file beside `path`, which NVBench stores as float32."""
    # Some versions of NVBench name it from elsewhere, as `<name>.json-bin/<number>.bin`.
    parts = Path(name).parts
    inner = [Path(*parts[-2:]), *([] if Path(name).is_absolute() else [Path(name)])]
    if ".." in parts:
        raise FieldError(f"{path}: filename", "a path below the folder of this file", name)
    file = next((path.parent / one for one in inner if (path.parent / one).is_file()), None)
    if file is None:
        raise HotpathError(f"{path}: its samples {name} are missing")
    content = read_bytes(file)
    if len(content) % 4 or (size is not None and str(len(content) // 4) != str(size)):
        raise FieldError(f"{file}", f"{size} numbers of 4 bytes", f"{len(content)} bytes")
    samples = np.frombuffer(content, "<f4")
    if not samples.size or not (np.isfinite(samples) & (samples > 0)).all():
        raise HotpathError(f"{file}: expected finite times above 0, at least one")
    return samples
