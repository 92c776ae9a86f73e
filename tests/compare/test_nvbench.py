"""NVBench files: samples, summaries, and files that are refused in one line."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import HotpathError
from analysis.compare.nvbench import read_files
from analysis.compare.report import Comparison, as_text, compare
from analysis.compare.side import Run
from tests.compare.nvbench_files import GPU_TIME, summaries, write_nvbench

STEADY = {("copy", "1"): [1e-5, 1.01e-5] * 8}
ROWS = {("copy", "1"): [1e-5, 1.2e-5, 1.1e-5], ("copy", "2"): [2e-5], ("sum", "1"): [3e-5] * 40}
Change = Callable[[Any], object]
"""A change of the first state of a file."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.json"
    write_nvbench(path, ROWS)
    return path


def changed(file: Path, *changes: Change) -> Path:
    document = json.loads(file.read_text())
    for change in changes:
        change(document["benchmarks"][0]["states"][0])
    file.write_text(json.dumps(document))
    return file


def run_of(path: Path) -> Run:
    """The run of the first row, which has the only clock and statistic."""
    runs = read_files("a", [path]).runs
    ((run,),) = [of_row for row, of_row in runs.items() if row[1:3] == ("copy", "case=1")]
    return run


def compared(a: Path, b: Path) -> Comparison:
    return compare(read_files("a", [a]), read_files("b", [b]), 0.01)


def test_times_are_medians_of_samples_or_summaries(file: Path) -> None:
    side = read_files("a", [file])
    assert set(side.runs) == {
        ("trial", name, axes, "device=0", "gpu_time median")
        for name, axes in (("copy", "case=1"), ("copy", "case=2"), ("sum", "case=1"))
    }
    assert run_of(file).seconds == pytest.approx(1.1e-5)
    shutil.rmtree(file.with_name("a.json-bin"))
    assert "samples of 3 states cannot be read" in read_files("a", [file]).notes[1]
    run = run_of(file)
    assert run.seconds == pytest.approx(1.1e-5)
    assert run.spread == pytest.approx(0.1 / 1.1 / 1.349, rel=0.01)
    assert run_of(changed(file, times(mean="4e-05"))).seconds == 4e-5  # as older files


def of_samples(key: str, value: str) -> Change:
    def change(state: Any) -> None:
        for entry in state["summaries"][-1]["data"]:
            if entry["name"] == key:
                entry["value"] = value

    return change


def times(tag: str = GPU_TIME, **values: str) -> Change:
    """Give the state these summaries only."""
    return lambda state: state.update(summaries=summaries(values, tag))


def test_a_file_of_another_form_is_refused_in_one_line(file: Path) -> None:
    changed(file, lambda state: state.update(device="x"))
    with pytest.raises(HotpathError, match=r"benchmarks\.copy\.states\..*device: exp") as error:
        read_files("a", [file])
    assert str(error.value).startswith(str(file)) and "\n" not in str(error.value)


@pytest.mark.parametrize("samples", [[], [1.0, np.nan], [np.inf], [0.0], [-1.0], [3e38]])
def test_samples_that_are_no_times_leave_the_summaries(file: Path, samples: list[float]) -> None:
    np.array(samples, "<f4").tofile(file.with_name("a.json-bin") / "0.bin")
    changed(file, of_samples("size", str(len(samples))))
    assert run_of(file).seconds == pytest.approx(1.1e-5)


@pytest.mark.parametrize("name", ["{folder}/s/0.bin", "s/0.bin", "../s/0.bin", "elsewhere/s/0.bin"])
@pytest.mark.parametrize("at", [".", ".."])
def test_samples_lie_where_nvbench_looks_for_them(file: Path, name: str, at: str) -> None:
    inner = file.parent / "inner" / file.name
    inner.parent.mkdir()
    file.rename(inner)
    samples = (inner.parent / at / "s" / "0.bin").resolve()
    samples.parent.mkdir()
    np.full(3, 7e-5, "<f4").tofile(samples)
    name = name.format(folder=samples.parents[1])
    is_read = at == "." or not name.startswith("elsewhere")
    run = run_of(changed(inner, of_samples("filename", name)))
    assert run.seconds == pytest.approx(7e-5 if is_read else 1.1e-5)


def test_programs_are_told_apart_by_as_much_of_their_path_as_needed(tmp_path: Path) -> None:
    def side(name: str, times: Mapping[str, float]) -> list[Path]:
        (tmp_path / name).mkdir()
        for number, (program, time) in enumerate(times.items()):
            rows = {("base", str(case)): [time] * 9 for case in range(9)}
            write_nvbench(tmp_path / name / f"{number}.json", rows, program)
        return sorted((tmp_path / name).glob("*.json"))

    old = side("a", {"/old/sort/bench": 1e-5, "/old/scan/bench": 3e-5, "/old/sum/bench": 9e-5})
    new = side("b", {"/new/sort/bench": 1.3e-5, "/new/scan/bench": 3e-5, "/new/sum/bench": 9e-5})
    found = compare(read_files("", old), read_files("", new), 0.01)
    slower = {row.row[0]: row.ratio for row in found.judged if row.direction == "slower"}
    assert slower == {"sort/bench": pytest.approx(1.3)} and len(found.judged) == 27
    found = compare(read_files("", old[:1]), read_files("", side("c", {"./renamed": 1e-5})), 0.01)
    assert {row.row[0] for row in found.judged} == {""}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (times(mean="2e-5"), "gpu_time median, B has gpu_time mean"),
        (times("nv/cold/time/cpu", median="2e-5"), "gpu_time median, B has cpu_time median"),
        (times("nv/cpu_only/time/cpu", mean="2"), "gpu_time median, B has cpu_only_time mean"),
    ],
)
def test_other_clocks_and_statistics_have_no_verdict(
    tmp_path: Path, change: Change, said: str
) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    for path in (a, b):
        write_nvbench(path, STEADY)
    found = compared(a, changed(b, change))
    assert not found.judged and found.exit_code == 2
    assert not found.unjudged["only in A"] and not found.unjudged["only in B"]
    assert f"no verdict, 1: copy case=1 (A has {said})" in as_text(found)


def on_devices(path: Path, devices: list[int], times: list[float]) -> Path:
    """A file with a state on each of these GPUs."""
    write_nvbench(path, STEADY)
    document = json.loads(path.read_text())
    (state,) = document["benchmarks"][0]["states"]
    document["benchmarks"][0]["states"] = [
        state | {"device": device, "summaries": summaries({"median": time})}
        for device, time in zip(devices, times, strict=True)
    ]
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize(
    ("a", "b", "ratios", "missing", "added"),
    [
        ([0], [0, 1], {("case=1", "device=0"): 2}, [], ["device=1"]),
        ([0, 1], [1], {("case=1", "device=1"): 2}, ["device=0"], []),
        ([0], [3], {("case=1", ""): 2}, [], []),
        ([0, 0], [0, 0], {("case=1", ""): 2, ("case=1 #2", ""): 3}, [], []),
    ],
)
def test_repeated_states_are_compared_in_their_order_and_a_gpu_with_itself_or_if_alone(
    tmp_path: Path, a: list[int], b: list[int], ratios: Any, missing: Any, added: Any
) -> None:
    before = on_devices(tmp_path / "a.json", a, [1e-5] * len(a))
    after = on_devices(tmp_path / "b.json", b, [2e-5, 3e-5][: len(b)])
    found = compared(before, after)
    assert {row.row[2:4]: round(row.ratio) for row in found.judged} == ratios
    assert [row[3] for row in found.unjudged["only in A"]] == missing
    assert [row[3] for row in found.unjudged["only in B"]] == added


@pytest.mark.parametrize(
    ("kind", "one", "other", "is_same"),
    [
        ("float64", "1", 1.0, True),
        ("float64", "1e3", 1000, True),
        ("string", "1", "1.0", False),
        ("int64", "9007199254740993", "9007199254740992", False),
    ],
)
def test_a_number_on_an_axis_is_itself_in_any_form(
    tmp_path: Path, kind: str, one: object, other: object, is_same: bool
) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    for path, value in ((a, one), (b, other)):
        write_nvbench(path, STEADY)
        axis = {"type": kind, "value": value}
        changed(path, lambda state: state["axis_values"][0].update(axis))  # noqa: B023
    assert bool(compared(a, b).judged) == is_same


@pytest.mark.parametrize("time", ["0", "-1e-5", "1e308", "1e-300", "nan"])
def test_a_time_that_no_clock_can_measure_is_no_time(file: Path, time: str) -> None:
    absent = read_files("a", [changed(file, times(mean=time))]).absent
    assert absent["trial", "copy", "case=1", "device=0"] == "no time"
