"""Times in NVBench's JSON files, from samples if they can be read, else from summaries.

What NVBench's scripts read is read: files of samples beside the JSON file, one folder up or at
their full path, and repeated states, which are matched in their order.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from analysis.base import keys
from analysis.base.errors import MAX_SHOWN, FieldError, HotpathError, visible
from analysis.base.reading import read_bytes, read_json
from analysis.compare.side import MAX_S, MIN_S, Row, Run, Side, run_of

LIMIT_BYTES: Final = 64 * 2**20
PROGRAM, DEVICE = 0, 3
"""Places in a row of parts that only count if a side has several of them."""
UNNAMED: Final = "unnamed program"
SAMPLES: Final = {"nv/cold/sample_times": "gpu_time", "nv/cpu_only/sample_times": "cpu_only_time"}
"""Clock by the tag of its samples, the preferred one first."""
TIMES: Final = {
    "nv/cold/time/gpu": "gpu_time",
    "nv/cold/time/cpu": "cpu_time",
    "nv/cpu_only/time/cpu": "cpu_only_time",
}
"""Clock by the tag of its summaries, the preferred one first."""
STATISTICS: Final = ("median", "mean")
SPREADS: Final = {"iqr/relative": 1.349, "ir/relative": 1.349, "stdev/relative": 1.0}
"""Measures of the spread, each with its value for the normal distribution in standard deviations;
`ir` is the older name of `iqr`."""
Text = Annotated[str, Field(max_length=2000)]


class _Value(BaseModel, strict=True):
    """A value of a summary or an axis, or a device. Other keys than those named are not read."""

    name: Text
    value: Text | int | float | None = None
    type: Text | None = None
    input_string: Text | None = None


class _Summary(BaseModel, strict=True):
    tag: Text
    data: list[_Value] | None = None


class _State(BaseModel, strict=True):
    name: Text
    device: int | None = None
    axis_values: list[_Value] | None = None
    summaries: list[_Summary] | None = None
    is_skipped: bool = False
    skip_reason: Text | None = None


class _Benchmark(BaseModel, strict=True):
    name: Text
    states: list[_State] | None = None


class _File(BaseModel, strict=True):
    meta: dict[str, Any] | None = None
    devices: list[_Value] | None = None
    benchmarks: list[_Benchmark]


def read_files(name: str, paths: Sequence[Path]) -> Side:
    """The side whose runs are these files; HotpathError names the file and the key.

    A row is the program, the benchmark, its axes, the GPU, and a clock and a statistic.
    """
    side = Side(name, optional=(PROGRAM, DEVICE))
    gpus: set[str] = set()
    unread: list[str] = []
    for path in paths:
        file = keys.read(_File, read_json(path.resolve(), LIMIT_BYTES), str(path))
        gpus |= {visible(device.name) for device in file.devices or []}
        seen: Counter[Row] = Counter()
        for row, state in _states(file):
            seen[row] += 1
            place = (*row[:2], f"{row[2]} #{seen[row]}", row[3]) if seen[row] > 1 else row
            time, run, fault = _time(path, state)
            if fault:
                unread.append(f"{path}: {fault}")
            if run:
                if time.startswith("cpu_only"):
                    place = (*place[:3], "")
                side.runs.setdefault((*place, time), []).append(run)
            else:
                side.absent[place] = visible(state.skip_reason or fault or "no time")
    for row in side.runs:
        side.absent.pop(row[:-1], None)
    if len(paths) > 1 and UNNAMED in side.parts(PROGRAM):
        side.notes.append("files that name no program count as runs of one program")
    side.notes += [f"GPU: {', '.join(sorted(gpus))}"] if gpus else []
    if unread:
        side.notes.append(f"samples of {len(unread)} states cannot be read: {unread[0]}")
    return side


def _states(file: _File) -> Iterator[tuple[Row, _State]]:
    match file.meta:
        case {"argv": [str() as path, *_]} if path:
            program = visible(str(Path(path))[-MAX_SHOWN:])
        case _:
            program = UNNAMED
    for benchmark in file.benchmarks:
        for state in benchmark.states or []:
            axes = " ".join(f"{axis.name}={_axis_value(axis)}" for axis in state.axis_values or [])
            has_gpu = state.device is not None and state.device >= 0
            device = f"device={state.device}" if has_gpu else ""
            yield (program, visible(benchmark.name), visible(axes), device), state


def _axis_value(axis: _Value) -> str:
    """The value as text; a number in one form, so that `1` is `1.0`, except on an axis of text."""
    text = str(axis.value if axis.value is not None else axis.input_string or "")
    if axis.type in ("string", "type"):
        return text
    with suppress(ValueError):
        return str(int(text))
    with suppress(ValueError):
        return str(int(number) if (number := float(text)).is_integer() else number)
    return text


def _time(path: Path, state: _State) -> tuple[str, Run | None, str]:
    """Clock and statistic of a state, its run, or None without a time above 0, and why its samples
    cannot be read."""
    if state.is_skipped:
        return "", None, ""
    found = {one.tag: {v.name: v.value for v in one.data or []} for one in state.summaries or []}
    id, fault = str(path.resolve()), ""
    for tag, clock in SAMPLES.items():
        about = found.get(f"nv/json/bin:{tag}", {})
        if name := about.get("filename"):
            files = _sample_files(path, str(name))
            try:
                return f"{clock} median", run_of(_samples(files, about.get("size")), id), ""
            except (HotpathError, OSError) as error:
                fault = str(error)
    for tag, clock in TIMES.items():
        for statistic in STATISTICS:
            if seconds := _number(found, f"{tag}/{statistic}", MIN_S, MAX_S):
                spreads = (
                    _number(found, f"{tag}/{name}", 0, 1e6) / u for name, u in SPREADS.items()
                )
                run = Run(seconds, next(filter(None, spreads), math.nan), id)
                return f"{clock} {statistic}", run, fault
    return "", None, fault


def _number(found: Mapping[str, Mapping[str, Any]], tag: str, low: float, high: float) -> float:
    """The number with this tag; 0 if none lies within its limits."""
    with suppress(TypeError, ValueError, OverflowError):
        if low <= (number := float(found.get(tag, {}).get("value"))) <= high:  # type: ignore[arg-type]
            return number
    return 0.0


def _sample_files(path: Path, name: str) -> list[Path]:
    """Where the samples may lie that `path` names, as NVBench's scripts look for them."""
    folder, end = path.resolve().parent, Path(*Path(name).parts[-2:])
    return [folder / name, folder / end, folder.parent / name, Path(name)]


def _samples(files: Sequence[Path], size: object) -> npt.NDArray[np.float32]:
    """The samples in the first of `files` that exists, which NVBench stores as float32.
    HotpathError if they cannot be read."""
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise HotpathError(f"{files[0]}: no such file")
    content = read_bytes(file.resolve(), LIMIT_BYTES)
    if len(content) % 4 or (size is not None and str(len(content) // 4) != str(size)):
        raise FieldError(f"{file}", f"{size} numbers of 4 bytes", f"{len(content)} bytes")
    samples = np.frombuffer(content, "<f4")
    if not samples.size or not ((samples >= MIN_S) & (samples <= MAX_S)).all():
        raise HotpathError(f"{file}: expected times from {MIN_S:g} to {MAX_S:g} s, at least one")
    return samples
