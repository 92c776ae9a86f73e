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
from tests.synthetic import CALLS, add_run, files_of, provenance_of, samples_of

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
        about = provenance_of(CALLS, variant, run=(run := f"2026-01-{day:02}T03:04:05Z"))
        about["machine"] |= {"host": HOSTS[0]}
        samples = samples_of(CALLS, variant, run=run, rounds=1)
        add_run(tmp_path, "box", CALLS.name, variant.name, samples, about)
    bad, *runs = files_of(tmp_path, "box", CALLS.name)
    bad.write_text("damaged")
    deleted = discard_superfluous(bad.parent, CALLS)
    assert deleted == [f"{path.stem}.json" for path in runs[1::-1]]
    assert {*bad.parent.glob("*.csv")} == {bad, *runs[2:]}
