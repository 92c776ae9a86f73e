"""NVBench files: samples, summaries, and which rows are the same."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.compare.nvbench import read_files
from analysis.compare.report import Comparison, as_text, compare
from analysis.compare.side import Run, Side
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


def changed(file: Path, change: Change) -> Path:
    document = json.loads(file.read_text())
    change(document["benchmarks"][0]["states"][0])
    file.write_text(json.dumps(document))
    return file


def run_of(path: Path) -> Run:
    """The run of the first row, which has the only clock and statistic."""
    runs = read_files("a", [path]).runs
    ((run,),) = [of_row for row, of_row in runs.items() if row[1:3] == ("copy", "case=1")]
    return run


def compared(folder: Path, *changes: Change) -> Comparison:
    """A steady file and another, each after its change."""
    files = [folder / f"{number}.json" for number, _ in enumerate(changes)]
    for file, change in zip(files, changes, strict=True):
        write_nvbench(file, STEADY)
        changed(file, change)
    a, b = (read_files("", [file]) for file in files)
    return compare(a, b, 0.01)


def about_samples(**values: str) -> Change:
    data = [{"name": name, "value": value} for name, value in values.items()]
    return lambda state: state["summaries"][-1]["data"].extend(data)


def times(tag: str = GPU_TIME, **values: str) -> Change:
    """Give the state these summaries only."""
    return lambda state: state.update(summaries=summaries(values, tag))


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
    for time in ("0", "-1e-5", "1e308", "1e-300", "nan"):
        absent = read_files("a", [changed(file, times(mean=time))]).absent
        assert absent["trial", "copy", "case=1", "device=0"] == "no time"


@pytest.mark.parametrize("samples", [[], [1.0, np.nan], [np.inf], [0.0], [-1.0], [3e38]])
def test_samples_that_are_no_times_leave_the_summaries(file: Path, samples: list[float]) -> None:
    np.array(samples, "<f4").tofile(file.with_name("a.json-bin") / "0.bin")
    changed(file, about_samples(size=str(len(samples))))
    assert run_of(file).seconds == pytest.approx(1.1e-5)


def test_programs_are_told_apart_by_as_much_of_their_path_as_needed(tmp_path: Path) -> None:
    def side(times: Mapping[str, float]) -> Side:
        files = [tmp_path / f"{program.replace('/', '-')}.json" for program in times]
        for file, (program, time) in zip(files, times.items(), strict=True):
            write_nvbench(file, {("base", str(n)): [time] * 9 for n in range(9)}, program)
        return read_files("", files)

    sort, scan, total = "/old/sort/bench", "/old/scan/bench", "/old/sum/bench"
    new = {"/new/sort/bench": 1.3e-5, "/new/scan/bench": 3e-5, "/new/sum/bench": 9e-5}
    found = compare(side({sort: 1e-5, scan: 3e-5, total: 9e-5}), side(new), 0.01)
    slower = found.judged[found.judged["direction"] == "slower"]
    assert {*slower["row"].str[0]} == {"sort/bench"} and len(found.judged) == 27
    assert [*slower["ratio"]] == pytest.approx([1.3] * 9)
    found = compare(side({sort: 1e-5}), side({"./renamed": 1e-5}), 0.01)
    assert {*found.judged["row"].str[0]} == {""}


def test_other_clocks_and_statistics_have_no_verdict(tmp_path: Path) -> None:
    for tag, statistic, of_b in (
        (GPU_TIME, "mean", "gpu_time mean"),
        ("nv/cold/time/cpu", "median", "cpu_time median"),
        ("nv/cpu_only/time/cpu", "mean", "cpu_only_time mean"),
    ):
        found = compared(tmp_path, id, times(tag, **{statistic: "2e-5"}))
        assert found.judged.empty and found.exit_code == 2
        assert not found.unjudged["only in A"] and not found.unjudged["only in B"]
        said = f"no verdict, 1: copy case=1 (A has gpu_time median, B has {of_b})"
        assert said in as_text(found)


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
    def side(devices: list[int], *medians: float) -> Side:
        path = tmp_path / "side.json"
        write_nvbench(path, STEADY)
        document = json.loads(path.read_text())
        (state,) = document["benchmarks"][0]["states"]
        document["benchmarks"][0]["states"] = [
            state | {"device": device, "summaries": summaries({"median": time})}
            for device, time in zip(devices, medians, strict=False)
        ]
        path.write_text(json.dumps(document))
        return read_files("", [path.rename(tmp_path / f"{medians[0]}.json")])

    found = compare(side(a, 1e-5, 1e-5), side(b, 2e-5, 3e-5), 0.01)
    got = dict(zip(found.judged["row"].str[2:4], found.judged["ratio"].round(), strict=True))
    assert got == ratios
    assert [row[3] for row in found.unjudged["only in A"]] == missing
    assert [row[3] for row in found.unjudged["only in B"]] == added


def test_a_number_on_an_axis_is_itself_in_any_form(tmp_path: Path) -> None:
    for kind, one, other, is_same in (
        ("float64", "1", 1.0, True),
        ("float64", "1e3", 1000, True),
        ("string", "1", "1.0", False),
        ("int64", "9007199254740993", "9007199254740992", False),
    ):

        def with_value(value: object, kind: str = kind) -> Change:
            axis = {"type": kind, "value": value}
            return lambda state: state["axis_values"][0].update(axis)

        assert len(compared(tmp_path, with_value(one), with_value(other)).judged) == is_same
