"""NVBench files: samples, summaries, and files that are refused in one line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import HotpathError
from analysis.compare.nvbench import read_files
from analysis.compare.report import Comparison, as_text, compare
from analysis.compare.side import Run
from tests.compare.nvbench_files import write_nvbench

STEADY = {("copy", "1"): [1e-5, 1.01e-5] * 8}
ROWS = {("copy", "1"): [1e-5, 1.2e-5, 1.1e-5], ("copy", "2"): [2e-5], ("sum", "1"): [3e-5] * 40}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.json"
    write_nvbench(path, ROWS)
    return path


def changed(file: Path, change: Callable[[Any], object]) -> Path:
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))
    return file


def state(document: Any, number: int = 0) -> Any:
    return document["benchmarks"][0]["states"][number]


def runs_of(paths: list[Path], name: str = "copy case=1") -> list[Run]:
    """The runs of a row that has the only clock and statistic."""
    runs = read_files("a", paths).runs
    (found,) = [of_row for row, of_row in runs.items() if " ".join(row[1:3]) == name]
    return found


def compared(a: Path, b: Path) -> Comparison:
    return compare(read_files("a", [a]), read_files("b", [b]), 0.01)


def test_times_are_medians_of_samples(file: Path) -> None:
    side = read_files("a", [file])
    assert set(side.runs) == {
        ("trial", name, axes, "device=0", "gpu_time median")
        for name, axes in (("copy", "case=1"), ("copy", "case=2"), ("sum", "case=1"))
    }
    assert runs_of([file])[0].seconds == pytest.approx(1.1e-5)
    assert runs_of([file], "sum case=1")[0].spread == pytest.approx(0, abs=1e-6)


def without(*unless: str) -> Callable[[Any], object]:
    """Drop the summaries whose tags have none of these parts."""

    def change(document: Any) -> None:
        for one in document["benchmarks"]:
            for of_state in one["states"]:
                kept = [s for s in of_state["summaries"] if any(u in s["tag"] for u in unless)]
                of_state["summaries"] = kept

    return change


def test_summaries_do_without_samples(file: Path) -> None:
    (run,) = runs_of([changed(file, without("nv/cold/time"))])
    assert run.seconds == pytest.approx(1.1e-5)
    assert run.spread == pytest.approx(0.1 / 1.1 / 1.349, rel=0.01)
    changed(file, without("/mean", "relative"))  # as older files
    changed(file, lambda d: state(d)["summaries"][0]["data"][0].update(value="4e-05"))
    assert runs_of([file])[0].seconds == 4e-5


def _filename(document: Any, name: str) -> None:
    for one in state(document)["summaries"]:
        for value in one.get("data", []):
            if value["name"] == "filename":
                value["value"] = name


def _summaries(document: Any, values: dict[str, str], tag: str = "nv/cold/time/gpu") -> None:
    """Give the first state these summaries only."""
    state(document)["summaries"] = [
        {"tag": f"{tag}/{name}", "data": [{"name": "value", "type": "float64", "value": value}]}
        for name, value in values.items()
    ]


HOSTILE: dict[str, Callable[[Any], object]] = {
    "no benchmarks": lambda d: d.pop("benchmarks"),
    "benchmarks of another type": lambda d: d.update(benchmarks={}),
    "a state that is text": lambda d: d["benchmarks"][0]["states"].append("x"),
    "a name that is a number": lambda d: d["benchmarks"][0].update(name=3),
    "a name without an end": lambda d: d["benchmarks"][0].update(name="x" * 3000),
    "a name with control characters": lambda d: d["benchmarks"][0].update(name="\x1b[31m"),
    "a device that is text": lambda d: state(d).update(device="0"),
    "summaries of numbers": lambda d: state(d).update(summaries=[1]),
    "a time beyond any": lambda d: _summaries(d, {"mean": "1e308"}),
    "a time below any": lambda d: _summaries(d, {"median": "1e-300"}),
    "a spread beyond any": lambda d: _summaries(d, {"median": "1", "iqr/relative": "1e308"}),
    "an axis of truths": lambda d: state(d)["axis_values"][0].update(value=True),
    "arguments that are text": lambda d: d["meta"].update(argv="trial"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(file: Path, change: Callable[[Any], object]) -> None:
    with pytest.raises(HotpathError) as error:
        read_files("a", [changed(file, change)])
    assert str(error.value).startswith(str(file))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("samples", [[], [1.0, np.nan], [np.inf], [0.0], [-1.0], [3e38]])
def test_samples_that_are_no_times_leave_the_summaries(file: Path, samples: list[float]) -> None:
    np.array(samples, "<f4").tofile(file.with_name("a.json-bin") / "0.bin")

    def count(document: Any) -> None:
        for value in (v for one in state(document)["summaries"] for v in one["data"]):
            if value["name"] == "size":
                value["value"] = str(len(samples))

    (run,) = runs_of([changed(file, count)])
    assert run.seconds == pytest.approx(1.1e-5)
    (note,) = read_files("a", [file]).notes[1:]
    assert note.startswith("samples of 1 states cannot be read") and "expected times" in note


def test_lost_samples_leave_the_summaries(file: Path) -> None:
    shutil.rmtree(file.with_name("a.json-bin"))
    side = read_files("a", [file])
    assert runs_of([file])[0].seconds == pytest.approx(1.1e-5)
    assert "samples of 3 states cannot be read" in side.notes[1] and "0.bin" in side.notes[1]

    side = read_files("a", [changed(file, without("json"))])
    assert not side.runs
    assert "no such file" in side.absent["trial", "copy", "case=1", "device=0"]


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
    (run,) = runs_of([changed(inner, lambda d: _filename(d, name))])
    assert run.seconds == pytest.approx(7e-5 if is_read else 1.1e-5)


def test_programs_are_told_apart_by_as_much_of_their_path_as_needed(tmp_path: Path) -> None:
    def side(name: str, times: dict[str, float]) -> list[Path]:
        files = []
        for number, (program, time) in enumerate(times.items()):
            path = tmp_path / name / f"{number}.json"
            path.parent.mkdir(exist_ok=True)
            write_nvbench(path, {("base", str(case)): [time] * 9 for case in range(9)})
            document = json.loads(path.read_text())
            document["meta"]["argv"] = [program, "-a"]
            path.write_text(json.dumps(document))
            files.append(path)
        return files

    old = side("a", {"/old/sort/bench": 1e-5, "/old/scan/bench": 3e-5, "/old/sum/bench": 9e-5})
    new = side("b", {"/new/sort/bench": 1.3e-5, "/new/scan/bench": 3e-5, "/new/sum/bench": 9e-5})
    found = compare(read_files("", old), read_files("", new), 0.01)
    slower = {one.row[0]: one.ratio for one in found.judged if one.direction == "slower"}
    assert slower == {"sort/bench": pytest.approx(1.3)}
    assert len(found.judged) == 27
    (one,) = side("c", {"./renamed": 1.3e-5})
    found = compare(read_files("", old[:1]), read_files("", [one]), 0.01)
    assert {judged.row[0] for judged in found.judged} == {""}


@pytest.mark.parametrize(
    ("tag", "values", "said"),
    [
        ("nv/cold/time/gpu", {"mean": "2e-5"}, "gpu_time median, B has gpu_time mean"),
        ("nv/cold/time/cpu", {"median": "2e-5"}, "gpu_time median, B has cpu_time median"),
        ("nv/cpu_only/time/cpu", {"mean": "2e-5"}, "gpu_time median, B has cpu_only_time mean"),
    ],
)
def test_other_clocks_and_statistics_have_no_verdict(
    tmp_path: Path, tag: str, values: dict[str, str], said: str
) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    for path in (a, b):
        write_nvbench(path, STEADY)
    found = compared(a, changed(b, lambda d: _summaries(d, values, tag)))
    assert not found.judged and found.exit_code == 2
    assert list(found.unjudged["no verdict"].values()) == [f"A has {said}"]
    assert not found.unjudged["only in A"] and not found.unjudged["only in B"]
    assert f"no verdict, 1: copy case=1 (A has {said})" in as_text(found)


def on_devices(path: Path, devices: list[int], times: list[float]) -> Path:
    write_nvbench(path, STEADY)

    def several(document: Any) -> None:
        (only,) = document["benchmarks"][0]["states"]
        document["benchmarks"][0]["states"] = [
            only | {"device": device, "summaries": _median(time)}
            for device, time in zip(devices, times, strict=True)
        ]

    return changed(path, several)


def _median(time: float) -> list[dict[str, Any]]:
    data = [{"name": "value", "type": "float64", "value": str(time)}]
    return [{"tag": "nv/cold/time/gpu/median", "data": data}]


@pytest.mark.parametrize(
    ("a", "b", "ratios", "missing", "added"),
    [
        ([0], [0, 1], {"device=0": 2}, [], ["device=1"]),
        ([1], [0, 1], {"device=1": 3}, [], ["device=0"]),
        ([0, 1], [1], {"device=1": 2}, ["device=0"], []),
        ([0, 1], [0, 1], {"device=0": 2, "device=1": 3}, [], []),
        ([0], [3], {"": 2}, [], []),
    ],
)
def test_a_gpu_is_compared_with_itself_or_if_alone(
    tmp_path: Path, a: list[int], b: list[int], ratios: Any, missing: Any, added: Any
) -> None:
    before = on_devices(tmp_path / "a.json", a, [1e-5] * len(a))
    after = on_devices(tmp_path / "b.json", b, [2e-5, 3e-5][: len(b)])
    found = compared(before, after)
    assert {one.row[3]: round(one.ratio) for one in found.judged} == ratios
    assert [row[3] for row in found.unjudged["only in A"]] == missing
    assert [row[3] for row in found.unjudged["only in B"]] == added


@pytest.mark.parametrize(
    ("kind", "one", "other", "is_same"),
    [
        ("float64", "1", "1.0", True),
        ("float64", 1, 1.0, True),
        ("int64", "1024", 1024, True),
        ("float64", "1e3", 1000, True),
        (None, "1", 1.0, True),
        ("string", "1", "1.0", False),
        ("type", "1", "1.0", False),
        ("int64", "9007199254740993", "9007199254740992", False),
    ],
)
def test_a_number_on_an_axis_is_itself_in_any_form(
    tmp_path: Path, kind: str | None, one: object, other: object, is_same: bool
) -> None:
    def axis(value: object) -> Callable[[Any], object]:
        return lambda d: state(d)["axis_values"][0].update(type=kind, value=value)

    a, b = tmp_path / "a.json", tmp_path / "b.json"
    for path, value in ((a, one), (b, other)):
        write_nvbench(path, STEADY)
        changed(path, axis(value))
    assert bool(compared(a, b).judged) == is_same


def test_repeated_states_are_compared_in_their_order(tmp_path: Path) -> None:
    a = on_devices(tmp_path / "a.json", [0, 0], [1e-5, 5e-5])
    b = on_devices(tmp_path / "b.json", [0, 0], [2e-5, 5e-5])
    found = compared(a, b)
    assert {one.row[2]: round(one.ratio) for one in found.judged} == {"case=1": 2, "case=1 #2": 1}


@pytest.mark.parametrize("time", ["0", "-1e-5"])
def test_a_time_that_is_not_positive_is_no_time(file: Path, time: str) -> None:
    absent = read_files("a", [changed(file, lambda d: _summaries(d, {"mean": time}))]).absent
    assert absent["trial", "copy", "case=1", "device=0"] == "no time"
