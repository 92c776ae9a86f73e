"""Runs in a study's folder: which of them a measurement deletes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.results.store.runs import HELD, KEPT_RUNS, discard_superfluous, needed
from tests.synthetic import CALLS, add_run, provenance_of, samples_of, set_capture

A, B = "kernel calls=1", "copy calls=1"
HOSTS = ("00000001", "00000002", "00000003")
File = tuple[str, dict[str, str]]
"""The host of a file, and the states of its cells."""
STATES = st.dictionaries(st.sampled_from([A, B]), st.sampled_from(["measured", "skipped", "stale"]))


def table_of(files: Sequence[File]) -> pd.DataFrame:
    """The table of files, oldest first, whose names are their numbers."""
    rows = [
        (f"{number}", host, cell, state)
        for number, (host, cells) in reversed([*enumerate(files)])
        for cell, state in cells.items()
    ]
    return pd.DataFrame(rows, columns=[*HELD])


@given(st.lists(st.tuples(st.sampled_from(HOSTS), STATES), max_size=30), st.booleans())
def test_nothing_is_deleted_that_a_figure_needs(files: list[File], of_captures: bool) -> None:
    table = table_of(files)
    kept = table[table["name"].isin(needed(table, of_captures=of_captures))]
    for cell in (A, B):
        before, now = (
            list(one["host"][(one["cell"] == cell) & (one["state"] == "measured")])
            for one in (table, kept)
        )
        assert len(now) >= min(len(before), KEPT_RUNS)
        assert {*now} == {*before}
        assert (cell in {*kept["cell"]}) == (cell in {*table["cell"]})
    assert needed(kept, of_captures=of_captures) == {*kept["name"]}


def measured(host: str, *cells: str) -> File:
    return host, dict.fromkeys(cells, "measured")


OLD: File = HOSTS[0], {A: "stale", B: "stale"}
EMPTY: list[File] = [(host, {A: "skipped"}) for host in HOSTS[:2]]


@pytest.mark.parametrize(
    ("files", "gone"),
    [
        # The oldest of more than eight runs of a host, but the last of no host.
        ([measured(HOSTS[0], A), *[measured(HOSTS[1], A)] * (KEPT_RUNS + 2)], {"1", "2"}),
        ([measured(HOSTS[1], A, B), *[measured(HOSTS[1], A)] * (KEPT_RUNS + 1)], {"1"}),
        # A stale file if each of its cells is measured anew.
        ([OLD, measured(HOSTS[1], A)], set()),
        ([OLD, measured(HOSTS[1], A), measured(HOSTS[1], B)], {"0"}),
        # A run that skipped everything stands outside the eight, until its host has the cell again.
        ([*EMPTY, EMPTY[0]], {"0"}),
        ([measured(HOSTS[0], A), *[measured(HOSTS[1], A)] * KEPT_RUNS, EMPTY[0]], set()),
    ],
)
def test_superfluous_files_go_and_no_others(files: list[File], gone: set[str]) -> None:
    table = table_of(files)
    assert {*table["name"]} - needed(table) == gone


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
    assert deleted == [f"202601{day:02}T030405Z-{HOSTS[0]}.json" for day in (2, 3)]
    left = sorted(path.name for path in folder.glob("*.csv"))
    assert left[0] == f"20251231T000000Z-{HOSTS[1]}.csv"
    assert [name[6:8] for name in left[1:]] == ["01", *(f"{day:02}" for day in range(4, 12))]


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
