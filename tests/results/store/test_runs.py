"""Runs in a study's folder: which are fresh, and which a measurement deletes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.results.store.runs import KEPT_RUNS, Cell, Held, discard_superfluous, superfluous
from tests.synthetic import (
    CALLS,
    edit_run,
    files_of,
    set_capture,
    write_machine,
)

A, B = ("kernel", "calls=1"), ("copy", "calls=1")
HOSTS = ("00000001", "00000002", "00000003")
CELLS = st.sampled_from([A, B])
STATES = st.dictionaries(CELLS, st.sampled_from(["measured", "skipped", "stale"]))
EMPTY = st.dictionaries(CELLS, st.just("empty"))
HELD = st.tuples(st.sampled_from(HOSTS), STATES | EMPTY)


def named(held: Sequence[Held]) -> dict[str, Held]:
    return {f"{number:03}": one for number, one in enumerate(held)}


@given(st.lists(HELD, max_size=30), st.booleans())
def test_nothing_is_deleted_that_a_figure_needs(held: list[Held], of_captures: bool) -> None:
    every = named(held)
    gone = superfluous(every, of_captures=of_captures)
    kept = {name: one for name, one in every.items() if name not in gone}
    for cell in (A, B):
        before, now = (
            [host for host, cells in files.values() if cells.get(cell) == "measured"]
            for files in (every, kept)
        )
        assert len(now) >= min(len(before), KEPT_RUNS)
        assert {*now} == {*before}
        assert any(cell in cells for _, cells in kept.values()) == any(cell in c for _, c in held)
    assert superfluous(kept, of_captures=of_captures) == []


def measured(host: str, *cells: Cell) -> Held:
    return host, dict.fromkeys(cells, "measured")


OLD: Held = HOSTS[0], {A: "stale", B: "stale"}
EMPTY_RUNS: list[Held] = [(host, {A: "empty"}) for host in HOSTS[:2]]


@pytest.mark.parametrize(
    ("held", "gone"),
    [
        # The oldest of more than eight runs of a host, but the last of no host.
        ([measured(HOSTS[0], A), *[measured(HOSTS[1], A)] * (KEPT_RUNS + 2)], ["001", "002"]),
        ([measured(HOSTS[1], A, B), *[measured(HOSTS[1], A)] * (KEPT_RUNS + 1)], ["001"]),
        # A stale file if each of its cells is measured anew.
        ([OLD, measured(HOSTS[1], A)], []),
        ([OLD, measured(HOSTS[1], A), measured(HOSTS[1], B)], ["000"]),
        # A run that skipped everything if its host skips the same again.
        ([*EMPTY_RUNS, EMPTY_RUNS[0]], ["000"]),
        ([*[measured(HOSTS[0], A)] * KEPT_RUNS, EMPTY_RUNS[0]], []),
    ],
)
def test_superfluous_files_go_and_no_others(held: list[Held], gone: list[str]) -> None:
    assert superfluous(named(held)) == gone


def test_measuring_deletes_old_files_whole_and_no_bad_one(tmp_path: Path) -> None:
    days = [f"2026-01-{day:02}T03:04:05Z" for day in range(1, 12)]
    for day in days:
        write_machine(tmp_path, "box", CALLS, run=day, rounds=1)
    paths = files_of(tmp_path, "box", CALLS.name)
    paths[0].write_text("damaged")
    for path in paths:  # of one host
        edit_run(path.with_suffix(".json"), lambda run: run["host"].update(id="00000001"))
        for file in (path, path.with_suffix(".json")):
            file.rename(file.with_name(f"{file.name[:16]}-00000001{file.suffix}"))
    folder = tmp_path / "box" / CALLS.name
    for path in folder.glob("*.json"):
        edit_run(
            path,
            lambda run: run.update(
                run=f"{run['run'][:16]}-00000001",
                files={f"{run['run'][:16]}-00000001.csv": d for d in run["files"].values()},
            ),
        )
    old = set_capture(tmp_path, "box", CALLS, "counters", {"kernel": {"source_sha256": "0" * 64}})
    set_capture(tmp_path, "box", CALLS, "counters", {"kernel": {}}, at="2026-02-02T00:00:00Z")
    (folder / "20251231T000000Z-00000001.csv").write_text("left by a killed deletion")
    (folder / "20251231T000000Z-00000002.csv").write_text("of another host")
    deleted = discard_superfluous(folder, CALLS, "00000001")
    assert deleted == [*(f"202601{d:02}T030405Z-00000001.json" for d in (2, 3)), old.name]
    left = sorted(path.name for path in folder.glob("*.csv"))
    assert left[0] == "20251231T000000Z-00000002.csv"
    assert [name[6:8] for name in left[1:]] == ["01", *(f"{day:02}" for day in range(4, 12))]


@pytest.mark.parametrize("code", [{}, {"source_sha256": "0" * 64}])
def test_captures_that_failed_replace_none_that_was_made(
    tmp_path: Path, code: dict[str, str]
) -> None:
    made = set_capture(tmp_path, "box", CALLS, "counters", {"kernel": code})
    host = json.loads(made.read_text())["host"]["id"]
    failed = {"kernel": {"status": "not captured: not permitted"}}
    for day in range(1, KEPT_RUNS + 2):
        path = set_capture(
            tmp_path, "box", CALLS, "counters", failed, at=f"2026-02-0{day}T00:00:00Z"
        )
        edit_run(path, lambda about: about["host"].update(id=host))
        path.rename(path.with_name(f"{path.name[:16]}-{host}.counters.json"))
    assert made.name not in discard_superfluous(made.parent, CALLS)
    new = set_capture(tmp_path, "box", CALLS, "counters", {"kernel": {}}, at="2026-03-01T00:00:00Z")
    assert (made.name in discard_superfluous(made.parent, CALLS)) == bool(code)
    assert new.exists()
