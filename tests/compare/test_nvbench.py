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
from tests.compare.nvbench_files import GPU_TIME, summaries, write_nvbench

STEADY = {("copy", "1"): [1e-5, 1.01e-5] * 8}
ROWS = {("copy", "1"): [1e-5, 1.2e-5, 1.1e-5], ("copy", "2"): [2e-5], ("sum", "1"): [3e-5] * 40}
Change = Callable[[Any], object]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.json"
    write_nvbench(path, ROWS)
    return path


def changed(file: Path, change: Change) -> Path:
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))
    return file


def state(document: Any) -> Any:
    return document["benchmarks"][0]["states"][0]


def runs_of(path: Path, name: str = "copy case=1") -> list[Run]:
    """The runs of a row that has the only clock and statistic."""
    runs = read_files("a", [path]).runs
    (found,) = [of_row for row, of_row in runs.items() if " ".join(row[1:3]) == name]
    return found


def compared(a: Path, b: Path) -> Comparison:
    return compare(read_files("a", [a]), read_files("b", [b]), 0.01)


def test_times_are_medians_of_samples(file: Path) -> None:
    assert set(read_files("a", [file]).runs) == {
        ("trial", name, axes, "device=0", "gpu_time median")
        for name, axes in (("copy", "case=1"), ("copy", "case=2"), ("sum", "case=1"))
    }
    assert runs_of(file)[0].seconds == pytest.approx(1.1e-5)
    assert runs_of(file, "sum case=1")[0].spread == pytest.approx(0, abs=1e-6)


def without(*unless: str) -> Change:
    """Drop the summaries whose tags have none of these parts."""

    def change(document: Any) -> None:
        for benchmark in document["benchmarks"]:
            for of_state in benchmark["states"]:
                kept = [s for s in of_state["summaries"] if any(u in s["tag"] for u in unless)]
                of_state["summaries"] = kept

    return change


def test_summaries_do_without_samples(file: Path) -> None:
    (run,) = runs_of(changed(file, without("nv/cold/time")))
    assert run.seconds == pytest.approx(1.1e-5)
    assert run.spread == pytest.approx(0.1 / 1.1 / 1.349, rel=0.01)
    changed(file, without("/mean", "relative"))  # as older files
    changed(file, lambda d: state(d)["summaries"][0]["data"][0].update(value="4e-05"))
    assert runs_of(file)[0].seconds == 4e-5


def of_samples(key: str, value: str) -> Change:
    def change(document: Any) -> None:
        for summary in state(document)["summaries"]:
            for entry in summary["data"]:
                if entry["name"] == key:
                    entry["value"] = value

    return change


def times(tag: str = GPU_TIME, **values: str) -> Change:
    """Give the first state these summaries only."""
    return lambda document: state(document).update(summaries=summaries(values, tag))


def run_as(program: str) -> Change:
    return lambda document: document["meta"].update(argv=[program, "-a"])


def on_axis(**values: object) -> Change:
    return lambda document: state(document)["axis_values"][0].update(values)


def test_a_file_of_another_form_is_refused_in_one_line(file: Path) -> None:
    with pytest.raises(HotpathError, match=r"benchmarks\.copy\.states\.2: expected") as error:
        read_files("a", [changed(file, lambda d: d["benchmarks"][0]["states"].extend("xx"))])
    assert str(error.value).startswith(str(file)) and "\n" not in str(error.value)


@pytest.mark.parametrize("samples", [[], [1.0, np.nan], [np.inf], [0.0], [-1.0], [3e38]])
def test_samples_that_are_no_times_leave_the_summaries(file: Path, samples: list[float]) -> None:
    np.array(samples, "<f4").tofile(file.with_name("a.json-bin") / "0.bin")
    changed(file, of_samples("size", str(len(samples))))
    assert runs_of(file)[0].seconds == pytest.approx(1.1e-5)


def test_samples_that_cannot_be_read_are_named(file: Path) -> None:
    assert runs_of(changed(file, of_samples("filename", "a" * 1999)))
    shutil.rmtree(file.with_name("a.json-bin"))
    side = read_files("a", [file])
    assert runs_of(file)[0].seconds == pytest.approx(1.1e-5)
    assert "samples of 3 states cannot be read" in side.notes[1]
    side = read_files("a", [changed(file, without("json"))])
    assert not side.runs
    assert "no such file" in side.absent["trial", "copy", "case=2", "device=0"]


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
    (run,) = runs_of(changed(inner, of_samples("filename", name)))
    assert run.seconds == pytest.approx(7e-5 if is_read else 1.1e-5)


def test_programs_are_told_apart_by_as_much_of_their_path_as_needed(tmp_path: Path) -> None:
    def side(name: str, times: dict[str, float]) -> list[Path]:
        folder = tmp_path / name
        folder.mkdir()
        for number, (program, time) in enumerate(times.items()):
            path = folder / f"{number}.json"
            write_nvbench(path, {("base", str(case)): [time] * 9 for case in range(9)})
            changed(path, run_as(program))
        return sorted(folder.glob("*.json"))

    old = side("a", {"/old/sort/bench": 1e-5, "/old/scan/bench": 3e-5, "/old/sum/bench": 9e-5})
    new = side("b", {"/new/sort/bench": 1.3e-5, "/new/scan/bench": 3e-5, "/new/sum/bench": 9e-5})
    found = compare(read_files("", old), read_files("", new), 0.01)
    slower = {row.row[0]: row.ratio for row in found.judged if row.direction == "slower"}
    assert slower == {"sort/bench": pytest.approx(1.3)} and len(found.judged) == 27
    (renamed,) = side("c", {"./renamed": 1.3e-5})
    found = compare(read_files("", old[:1]), read_files("", [renamed]), 0.01)
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
    write_nvbench(path, STEADY)

    def several(document: Any) -> None:
        only = state(document)
        document["benchmarks"][0]["states"] = [
            only | {"device": device, "summaries": summaries({"median": time})}
            for device, time in zip(devices, times, strict=True)
        ]

    return changed(path, several)


@pytest.mark.parametrize(
    ("a", "b", "ratios", "missing", "added"),
    [
        ([0], [0, 1], {"device=0": 2}, [], ["device=1"]),
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
    assert {row.row[3]: round(row.ratio) for row in found.judged} == ratios
    assert [row[3] for row in found.unjudged["only in A"]] == missing
    assert [row[3] for row in found.unjudged["only in B"]] == added


@pytest.mark.parametrize(
    ("kind", "one", "other", "is_same"),
    [
        ("float64", "1", 1.0, True),
        ("float64", "1e3", 1000, True),
        ("string", "1", "1.0", False),
        ("type", "1", "1.0", False),
        ("int64", "9007199254740993", "9007199254740992", False),
    ],
)
def test_a_number_on_an_axis_is_itself_in_any_form(
    tmp_path: Path, kind: str, one: object, other: object, is_same: bool
) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    for path, value in ((a, one), (b, other)):
        write_nvbench(path, STEADY)
        changed(path, on_axis(type=kind, value=value))
    assert bool(compared(a, b).judged) == is_same


def test_repeated_states_are_compared_in_their_order(tmp_path: Path) -> None:
    a = on_devices(tmp_path / "a.json", [0, 0], [1e-5, 5e-5])
    b = on_devices(tmp_path / "b.json", [0, 0], [2e-5, 5e-5])
    ratios = {row.row[2]: round(row.ratio) for row in compared(a, b).judged}
    assert ratios == {"case=1": 2, "case=1 #2": 1}


@pytest.mark.parametrize("time", ["0", "-1e-5", "1e308", "1e-300", "nan"])
def test_a_time_that_no_clock_can_measure_is_no_time(file: Path, time: str) -> None:
    absent = read_files("a", [changed(file, times(mean=time))]).absent
    assert absent["trial", "copy", "case=1", "device=0"] == "no time"
