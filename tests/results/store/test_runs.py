"""Runs in a study's folder: which of them a measurement deletes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.results.store import METHOD_VERSION
from analysis.results.store.keys import RunFile
from analysis.results.store.runs import KEPT_RUNS, Run, codes_of, discard_superfluous, superfluous
from tests.synthetic import CALLS, add_run, provenance_of, samples_of, set_capture

HOSTS = ("00000001", "00000002", "00000003")
File = tuple[str, dict[str, str]]
"""The host of a file, and the state of its variants: measured, skipped or stale."""
STATES = st.dictionaries(st.sampled_from("ab"), st.sampled_from(["measured", "skipped", "stale"]))
CODES = codes_of(CALLS)
CELLS = {"a": ("kernel", CALLS.headline), "b": ("python", CALLS.headline)}


def left(files: list[File]) -> set[int]:
    """The numbers of the files that stay; they are given oldest first."""

    def run(number: int, host: str, states: dict[str, str]) -> Run:
        codes = {CELLS[name][0]: CODES[CELLS[name][0]] for name in states}
        codes |= {CELLS[name][0]: "0" * 64 for name, state in states.items() if state == "stale"}
        about: Any = RunFile.model_construct(
            run=f"{number}",
            method_version=METHOD_VERSION,
            host=SimpleNamespace(id=host),
            variants={name: SimpleNamespace(source_sha256=code) for name, code in codes.items()},
        )
        rows: Any = [SimpleNamespace(cell=CELLS[n], status=state) for n, state in states.items()]
        return Run(about, rows)

    runs = [run(number, *file) for number, file in enumerate(files)][::-1]
    gone = {about.file_name for about in superfluous(runs, CALLS)}
    return {number for number in range(len(files)) if f"{number}.json" not in gone}


@given(st.lists(st.tuples(st.sampled_from(HOSTS), STATES), max_size=30))
def test_nothing_is_deleted_that_a_figure_needs(files: list[File]) -> None:
    kept = [files[number] for number in sorted(left(files))]
    for cell in "ab":
        before, now = (
            [host for host, states in some if states.get(cell) == "measured"]
            for some in (files, kept)
        )
        assert len(now) >= min(len(before), KEPT_RUNS) and {*now} == {*before}
        assert any(cell in states for _, states in kept) == any(cell in one for _, one in files)
    assert left(kept) == {*range(len(kept))}


def measured(host: str, *cells: str) -> File:
    return host, dict.fromkeys(cells, "measured")


OLD: File = HOSTS[0], {"a": "stale", "b": "stale"}
EMPTY: list[File] = [(host, {"a": "skipped"}) for host in HOSTS[:2]]


@pytest.mark.parametrize(
    ("files", "gone"),
    [
        # The oldest of more than eight runs of a host, but the last of no host.
        ([measured(HOSTS[0], "a"), *[measured(HOSTS[1], "a")] * (KEPT_RUNS + 2)], {1, 2}),
        ([measured(HOSTS[1], "a", "b"), *[measured(HOSTS[1], "a")] * (KEPT_RUNS + 1)], {1}),
        # A stale file if each of its cells is measured anew.
        ([OLD, measured(HOSTS[1], "a")], set()),
        ([OLD, measured(HOSTS[1], "a"), measured(HOSTS[1], "b")], {0}),
        # A run that skipped everything stands outside the eight, until its host has the cell again.
        ([*EMPTY, EMPTY[0]], {0}),
        ([measured(HOSTS[0], "a"), *[measured(HOSTS[1], "a")] * KEPT_RUNS, EMPTY[0]], set()),
    ],
)
def test_superfluous_files_go_and_no_others(files: list[File], gone: set[int]) -> None:
    assert {*range(len(files))} - left(files) == gone


def test_measuring_deletes_old_files_whole_and_no_bad_one(tmp_path: Path) -> None:
    variant = CALLS.variant("kernel")
    for day in range(1, 12):
        run = f"2026-01-{day:02}T03:04:05Z"
        about = provenance_of(CALLS, variant, run=run)
        about["machine"] |= {"host": HOSTS[0]}
        samples = samples_of(CALLS, variant, run=run, rounds=1)
        add_run(tmp_path, "box", CALLS.name, variant.name, samples, about)
    folder = tmp_path / "box" / CALLS.name
    (folder / f"20260101T030405Z-{HOSTS[0]}.csv").write_text("damaged")
    (folder / f"20251231T000000Z-{HOSTS[0]}.csv").write_text("left by a killed deletion")
    (folder / f"20251231T000000Z-{HOSTS[1]}.csv").write_text("of another host")
    deleted = discard_superfluous(folder, CALLS, HOSTS[0])
    assert deleted == [f"202601{day:02}T030405Z-{HOSTS[0]}.json" for day in (3, 2)]
    names = sorted(path.name for path in folder.glob("*.csv"))
    assert names[0] == f"20251231T000000Z-{HOSTS[1]}.csv"
    assert [name[6:8] for name in names[1:]] == ["01", *(f"{day:02}" for day in range(4, 12))]


@pytest.mark.parametrize("code", [{}, {"source_sha256": "0" * 64}])
def test_captures_that_failed_replace_none_that_was_made(
    tmp_path: Path, code: dict[str, str]
) -> None:
    def capture(at: str, **about: str) -> Path:
        return set_capture(tmp_path, "box", CALLS, "counters", {"kernel": about}, at=at)

    made = capture("2026-01-01T00:00:00Z", **code)
    capture("2026-02-01T00:00:00Z", status="not captured: not permitted")
    assert discard_superfluous(made.parent, CALLS) == []
    capture("2026-03-01T00:00:00Z")
    assert (made.name in discard_superfluous(made.parent, CALLS)) == bool(code)
