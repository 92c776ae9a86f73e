"""NVBench files: samples, summaries, and files that are refused in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import HotpathError
from analysis.compare.nvbench import read_files
from analysis.compare.trial.files import plant, write_nvbench

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


def test_times_are_medians_of_samples(file: Path) -> None:
    side = read_files("a", [file])
    assert set(side.runs) == {("copy", "case=1"), ("copy", "case=2"), ("sum", "case=1")}
    assert side.runs["copy", "case=1"][0].seconds == pytest.approx(1.1e-5)
    assert side.runs["sum", "case=1"][0].spread == pytest.approx(0, abs=1e-6)


def test_every_file_of_a_side_is_a_run(file: Path, tmp_path: Path) -> None:
    second = tmp_path / "b.json"
    plant(file, second, 0.1, [("copy", "case=1")])
    runs = read_files("a", [file, second]).runs["copy", "case=1"]
    assert runs[1].seconds / runs[0].seconds == pytest.approx(1.1)


def test_summaries_do_without_samples(file: Path) -> None:
    def without_files(document: Any) -> None:
        for one in document["benchmarks"]:
            for of_state in one["states"]:
                of_state["summaries"] = [
                    s for s in of_state["summaries"] if not s["tag"].startswith("nv/json")
                ]

    run = read_files("a", [changed(file, without_files)]).runs["copy", "case=1"][0]
    assert run.seconds == pytest.approx(1.1e-5)
    assert run.spread == pytest.approx(0.1 / 1.1 / 1.349, rel=0.01)


def test_older_files_have_means_only(file: Path) -> None:
    def older(document: Any) -> None:
        for one in document["benchmarks"]:
            for of_state in one["states"]:
                of_state["summaries"] = [
                    s for s in of_state["summaries"] if s["tag"].endswith(("/mean", "relative"))
                ]
                of_state["summaries"][0]["data"][0]["value"] = "4e-05"

    assert read_files("a", [changed(file, older)]).runs["copy", "case=1"][0].seconds == 4e-5


def test_a_skipped_state_has_its_reason(file: Path) -> None:
    def skip(document: Any) -> None:
        state(document).update(is_skipped=True, skip_reason="too large")

    side = read_files("a", [changed(file, skip)])
    assert side.absent["copy", "case=1"] == "too large"


def _filename(document: Any, name: str) -> None:
    for one in state(document)["summaries"]:
        for value in one.get("data", []):
            if value["name"] == "filename":
                value["value"] = name


HOSTILE: dict[str, Callable[[Any], object]] = {
    "no benchmarks": lambda d: d.pop("benchmarks"),
    "benchmarks of another type": lambda d: d.update(benchmarks={}),
    "a state that is text": lambda d: d["benchmarks"][0]["states"].append("x"),
    "a state twice": lambda d: d["benchmarks"][0]["states"].append(state(d)),
    "a name that is a number": lambda d: d["benchmarks"][0].update(name=3),
    "a name without an end": lambda d: d["benchmarks"][0].update(name="x" * 3000),
    "a name with control characters": lambda d: d["benchmarks"][0].update(name="\x1b[31m"),
    "a device that is text": lambda d: state(d).update(device="0"),
    "summaries of numbers": lambda d: state(d).update(summaries=[1]),
    "samples above the folder": lambda d: _filename(d, "../secret.bin"),
    "samples that are missing": lambda d: _filename(d, "a.json-bin/99.bin"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(file: Path, change: Callable[[Any], object]) -> None:
    with pytest.raises(HotpathError) as error:
        read_files("a", [changed(file, change)])
    assert str(error.value).startswith(str(file))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize(
    "samples", [[], [1.0, np.nan], [np.inf], [0.0], [-1.0]], ids=["none", "nan", "inf", "0", "<0"]
)
def test_hostile_samples_are_refused(file: Path, samples: list[float]) -> None:
    np.array(samples, "<f4").tofile(file.with_name("a.json-bin") / "0.bin")

    def count(document: Any) -> None:
        for value in (v for one in state(document)["summaries"] for v in one["data"]):
            if value["name"] == "size":
                value["value"] = str(len(samples))

    with pytest.raises(HotpathError, match="expected finite times above 0"):
        read_files("a", [changed(file, count)])


def test_samples_above_the_folder_are_refused(file: Path) -> None:
    inner = file.parent / "inner" / file.name
    inner.parent.mkdir()
    inner.write_text(file.read_text())
    with pytest.raises(HotpathError, match="a path below the folder of this file"):
        read_files("a", [changed(inner, lambda d: _filename(d, "../a.json-bin/0.bin"))])


@pytest.mark.parametrize("text", ["", "[]", "{", '{"benchmarks": NaN}', "[" * 100_000])
def test_no_json_is_refused(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(HotpathError, match=r"a\.json"):
        read_files("a", [file])


@pytest.mark.parametrize("time", ["0", "-1e-5"])
def test_a_time_that_is_not_positive_is_no_time(file: Path, time: str) -> None:
    def zero(document: Any) -> None:
        state(document)["summaries"] = [
            {"tag": "nv/cold/time/gpu/mean", "data": [{"name": "value", "value": time}]}
        ]

    assert read_files("a", [changed(file, zero)]).absent["copy", "case=1"] == "no time"
