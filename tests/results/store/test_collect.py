"""Samples of all machines as one table, with stale ones, and the runs that measuring deletes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.results.collect import collect
from analysis.results.store import METHOD_VERSION
from analysis.results.store.keys import RunFile
from analysis.results.store.runs import KEPT_RUNS, Run, codes_of, discard_superfluous, superfluous
from analysis.results.tables.summary import round_table
from tests.synthetic import (
    CALLS,
    COPY,
    STUDIES,
    add_run,
    edit_run,
    files_of,
    host_id_of,
    make_stale,
    name_of,
    provenance_of,
    samples_of,
    write_machine,
)

OLD, MIDDLE, NEW = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3))
KERNEL, COPIED = CALLS.variant("kernel"), COPY.variants[0]


def test_a_result_is_fresh_by_variant_and_method(tmp_path: Path) -> None:
    write_machine(tmp_path, "box", CALLS, rounds=1)
    removed = [replace(sample, variant="removed") for sample in samples_of(CALLS, KERNEL)]
    add_run(tmp_path, "box", "calls", "removed", removed, provenance_of(CALLS, KERNEL))
    (path,) = files_of(tmp_path, "box", CALLS.name)
    make_stale(path, "kernel")
    samples = collect(tmp_path, STUDIES).samples
    assert set(samples[samples["stale"]]["variant"]) == {"kernel", "removed"}
    edit_run(path.with_suffix(".json"), lambda run: run.update(method_version=1))
    for known in (STUDIES, {}):
        assert collect(tmp_path, known).samples["stale"].all()


@pytest.mark.parametrize(("key", "value"), [("case", "calls=101"), ("metric", "gone")])
def test_fresh_samples_of_a_case_or_metric_that_is_gone_are_left_out(
    tmp_path: Path, key: str, value: str
) -> None:
    """The run stays as good as it was, for the sake of its other samples. Stale ones are shown."""
    gone, *others = samples_of(CALLS, KERNEL, rounds=1)
    changed = [type(gone)(**{**vars(gone), key: value}), *others]
    add_run(tmp_path, "box", CALLS.name, KERNEL.name, changed, provenance_of(CALLS, KERNEL))
    found = collect(tmp_path, STUDIES)
    assert found.refused == {} and len(found.samples) == len(others)
    make_stale(files_of(tmp_path, "box", CALLS.name)[0])
    assert value in set(collect(tmp_path, STUDIES).samples[key])


def test_samples_beyond_the_limit_of_a_machine_leave_older_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long run leaves out no shorter one."""
    for machine, run in (("box", OLD), ("box", MIDDLE), ("box", NEW), ("other", OLD)):
        rounds = 3 if run == MIDDLE else 2
        write_machine(tmp_path, machine, CALLS, rounds=rounds, run=run)
    sizes = collect(tmp_path, STUDIES).samples.groupby(["machine", "run"]).size()
    two = int(sizes["box", name_of(NEW)])
    for limit, left_out in ((7 * two // 2, []), (5 * two // 2, [OLD]), (2 * two, [MIDDLE])):
        monkeypatch.setattr("analysis.results.collect.MACHINE_LIMIT_SAMPLES", limit)
        found = collect(tmp_path, STUDIES)
        assert [*found.refused] == [f"box/calls/{name_of(run)}.json" for run in left_out]
        assert all(f"at most {limit} samples of a machine" in r for r in found.refused.values())
    monkeypatch.undo()
    monkeypatch.setattr("analysis.results.store.runs.MAX_FILES", 2)
    (tmp_path / "box" / "calls" / "20260303T030405Z-00000000.json").write_text("{}")
    bad, late = collect(tmp_path, STUDIES).refused
    assert "20260303" in bad and late == f"box/calls/{name_of(OLD)}.json"


def test_the_newest_host_and_the_conditions_of_rounds_are_known(tmp_path: Path) -> None:
    looks = [{"spin_s": 1.0, "copy_bytes_per_s": rate} for rate in (3e10, 2e10, 4e10)]
    noted = {"disturbed": [{"round": 1, "why": ["others kept 3.0 cores busy"]}]}
    for run, cores, more in ((OLD, 8, {}), (NEW, 16, {"conditions": looks, **noted})):
        provenance = provenance_of(COPY, COPIED, run=run) | more
        provenance["machine"] |= {"cores": cores}
        samples = samples_of(COPY, COPIED, run=run, rounds=3)
        add_run(tmp_path, "box", "copy", COPIED.name, samples, provenance)
    found = collect(tmp_path, STUDIES)
    assert found.machines["box"]["cores"] == 16
    by_round = found.samples.groupby(["run", "round"]).first()
    new, old = (by_round.loc[name_of(run)] for run in (NEW, OLD))
    assert {*new["host"]} == {host_id_of(NEW)} and {*old["host"]} == {host_id_of(OLD)}
    assert list(new["core_copies"]) == pytest.approx([2e10, 2e10, math.nan], nan_ok=True)
    assert old["core_copies"].isna().all()
    # Of the shown case, the rounds whose core was measured.
    assert [*round_table(found.samples, STUDIES)["round"].unique()] == [0, 1]
    assert list(new["disturbed"]) == [False, True, False] and not old["disturbed"].any()
    files_of(tmp_path, "box", "copy")[1].unlink()
    described = collect(tmp_path, STUDIES).machines["box"]
    assert (described["host"], described["cores"]) == (host_id_of(OLD), 8)


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


STALE: File = HOSTS[0], {"a": "stale", "b": "stale"}
EMPTY: list[File] = [(host, {"a": "skipped"}) for host in HOSTS[:2]]


@pytest.mark.parametrize(
    ("files", "gone"),
    [
        # The oldest of more than eight runs of a host, but the last of no host.
        ([measured(HOSTS[0], "a"), *[measured(HOSTS[1], "a")] * (KEPT_RUNS + 2)], {1, 2}),
        ([measured(HOSTS[1], "a", "b"), *[measured(HOSTS[1], "a")] * (KEPT_RUNS + 1)], {1}),
        # A stale file if each of its cells is measured anew.
        ([STALE, measured(HOSTS[1], "a")], set()),
        ([STALE, measured(HOSTS[1], "a"), measured(HOSTS[1], "b")], {0}),
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
