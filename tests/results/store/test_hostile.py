"""Invalid results, by mistake or intent: only their run is left out, by name and in one line."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analysis.base import keys
from analysis.base.errors import FieldError
from analysis.results.collect import KEY, Collected, collect
from analysis.results.store.keys import CaptureFile, Keys, RunFile, without_private
from tests.results.store.hostile import (
    EARLIER,
    FOLDERS,
    HARMLESS,
    JSON,
    MUTATIONS,
    NAME,
    OF_COUNTERS,
    STUDY,
    apply,
    drawn,
    write_whole_machine,
)
from tests.roots import write_tables
from tests.synthetic import CALLS, STUDIES, name_of

WHOLE = "whole-box"
HOSTILE = "hostile-box"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two machines with one study."""
    root = tmp_path_factory.mktemp("whole")
    for machine in (WHOLE, HOSTILE):
        write_whole_machine(root, machine, CALLS)
    return root


@pytest.fixture(scope="module")
def expected(whole: Path) -> Collected:
    """Files before any change."""
    found = collect(whole, STUDIES)
    assert found.refused == {}
    assert found.samples.groupby(["machine", "run"]).ngroups == len(found.captures) == 4
    return found


def assert_only_the_run_is_left_out(
    found: Collected, expected: Collected, *, with_earlier: bool = True
) -> None:
    """The other machine, and the other run of the hostile one, are untouched; every fault is a
    line."""
    runs = [(WHOLE, NAME), (WHOLE, name_of(EARLIER))]
    for machine, run in [*runs, *([(HOSTILE, name_of(EARLIER))] if with_earlier else [])]:
        before, now = (
            one.samples[(one.samples["machine"] == machine) & (one.samples["run"] == run)]
            for one in (expected, found)
        )
        assert now.reset_index(drop=True).equals(before.reset_index(drop=True))
        assert len(now)
    for name, reason in found.refused.items():
        assert name.startswith(f"{HOSTILE}/") and reason.startswith(HOSTILE)
        assert reason.isprintable() and len(reason) < 700
        assert not re.search("Error: |argument", reason)  # as of a fault that no check found


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_is_rejected_alone_or_harmless(
    whole: Path, tmp_path: Path, expected: Collected, name: str
) -> None:
    root = shutil.copytree(whole, tmp_path / "results")
    MUTATIONS[name](root / HOSTILE)
    found = collect(root, STUDIES)
    assert_only_the_run_is_left_out(found, expected, with_earlier=name not in FOLDERS)
    assert (found.refused == {}) == (name in HARMLESS)
    if cell := re.match(r"(?:\w+\.)?csv (\d)/(\w+)", name):
        for reason in found.refused.values():
            of_cell = rf"line \d+: (.*{cell[2]}|status|end|expected the columns|field)"
            assert re.search(rf": ({of_cell}|expected at most)", reason)


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.exhaustive)])
def test_random_changes_are_rejected_or_harmless(
    whole: Path, expected: Collected, tmp_path: Path, count: int
) -> None:
    for edits in drawn(count):
        root = tmp_path / "random" / "results"
        shutil.rmtree(root.parent, ignore_errors=True)
        shutil.copytree(whole, root)
        apply(root / HOSTILE, edits)
        found = collect(root, STUDIES)
        assert_only_the_run_is_left_out(found, expected)
        measured = found.samples[found.samples["status"] == "ok"]
        assert measured["value"].between(1e-13, 1e15).all(), edits
        assert not found.samples.duplicated([*KEY[:-1], "run", "round", "sample"]).any(), edits
        if not found.refused:
            write_tables(root, {CALLS.name: CALLS}, root.parent / "tables")


def places(data: Any) -> Iterator[tuple[Any, str | int]]:
    """Every object or list within, with each of its keys or places."""
    for part, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
        yield data, part
        if isinstance(value, dict | list):
            yield from places(value)


@pytest.mark.parametrize(("name", "kind"), [(JSON, RunFile), (OF_COUNTERS, CaptureFile)])
def test_wrong_values_are_refused_by_name(whole: Path, name: str, kind: type[Keys]) -> None:
    """Also an unknown key in every object, and every key that is missing."""
    data = json.loads((whole / HOSTILE / STUDY / name).read_text())
    data["host"]["gpus"][0]["power_limit_w"] = 700.0
    keys.read(kind, data, name)

    def refuses(key: str) -> None:
        with pytest.raises(FieldError) as caught:
            keys.read(kind, data, name)
        assert str(caught.value).startswith(f"{name}: ") and key in str(caught.value)

    for inner, part in [*places(data)]:
        right = inner[part]
        of_type = ["1"] if isinstance(right, int | float) else [1, True] if right else []
        for wrong in ({"a": {}}, -1, "in /home/me/x", float("nan"), *of_type):
            inner[part] = wrong
            refuses("" if isinstance(part, int) else part)
        inner[part] = right
        if isinstance(right, dict) and part in ("host", "limits", "compiler", "kernel"):
            right["colour"] = "green"
            refuses("colour")
            del right["colour"]
    for key in list(data):
        right = data.pop(key)
        refuses(key)
        data[key] = right


def test_a_text_is_published_without_paths_and_ids() -> None:
    uuid = "01234567-89ab-cdef-0123-456789abcdef"
    text = without_private(f'\'{{"nvcc": "/home/me/cuda"}}\' GPU-{uuid} /tmp/{uuid} C:\\me a/b')
    assert text == '\'{"nvcc": "cuda"}\' UUID UUID me a/b'
