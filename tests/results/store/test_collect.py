"""Samples of all machines as one table, with stale results and other files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.results.collect import COLUMNS, chosen, collect
from analysis.results.store.runs import machines
from tests.synthetic import (
    CALLS,
    COPY,
    STUDIES,
    add_run,
    files_of,
    host_id_of,
    name_of,
    provenance_of,
    samples_of,
    write_machine,
)

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def test_results_of_removed_variants_are_stale(tmp_path: Path) -> None:
    kernel = CALLS.variant("kernel")
    samples = [replace(sample, variant="removed") for sample in samples_of(CALLS, kernel)]
    add_run(tmp_path, "box", "calls", "removed", samples, provenance_of(CALLS, kernel))
    found = collect(tmp_path, STUDIES).samples
    assert set(found["variant"]) == {"removed"} and found["stale"].all()


def test_published_figures_are_no_machine(tmp_path: Path) -> None:
    write_machine(tmp_path, "box", CALLS, variants=[CALLS.variant("kernel")])
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "other.csv").touch()
    (tmp_path / "empty").mkdir()
    assert machines(tmp_path) == ["box"]
    assert collect(tmp_path, STUDIES).refused == {}


def test_nothing_measured_is_an_empty_table_with_all_columns(tmp_path: Path) -> None:
    found = collect(tmp_path, STUDIES)
    assert tuple(found.samples.columns) == COLUMNS
    assert chosen(found.samples).empty


def test_samples_beyond_the_limit_of_a_machine_leave_older_runs_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    middle = "2026-01-01T12:00:00Z"
    for machine, run in (("box", OLD), ("box", middle), ("box", NEW), ("other", OLD)):
        write_machine(tmp_path, machine, CALLS, rounds=2, run=run)
    limit = (collect(tmp_path, STUDIES).samples["machine"] == "box").sum()
    monkeypatch.setattr("analysis.results.collect.MACHINE_LIMIT_SAMPLES", limit)
    assert collect(tmp_path, STUDIES).refused == {}
    monkeypatch.setattr("analysis.results.collect.MACHINE_LIMIT_SAMPLES", limit - 1)
    found = collect(tmp_path, STUDIES)
    ((name, reason),) = found.refused.items()
    assert name == f"box/calls/{name_of(OLD)}.json"
    assert f"expected at most {limit - 1} samples of a machine" in reason
    assert set(found.samples["run"]) == {name_of(run) for run in (NEW, middle, OLD)}


def test_runs_beyond_their_number_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run in (OLD, NEW):
        write_machine(tmp_path, "box", CALLS, rounds=1, run=run)
    monkeypatch.setattr("analysis.results.store.runs.MAX_FILES", 1)
    found = collect(tmp_path, STUDIES)
    assert list(found.refused) == [f"box/calls/{name_of(OLD)}.json"]
    assert [run.run for run in found.runs] == [name_of(NEW)]


def test_a_machine_is_described_by_the_host_of_its_newest_run(tmp_path: Path) -> None:
    for run, cores in ((OLD, 8), (NEW, 16)):
        variant = COPY.variants[0]
        provenance = provenance_of(COPY, variant, run=run)
        provenance["machine"] |= {"cores": cores}
        samples = samples_of(COPY, variant, run=run, rounds=1)
        add_run(tmp_path, "box", "copy", variant.name, samples, provenance)
    found = collect(tmp_path, STUDIES)
    assert found.machines["box"]["cores"] == 16
    hosts = dict(found.samples.groupby("run")["host"].first())
    assert hosts == {name_of(run): name_of(run).partition("-")[2] for run in (OLD, NEW)}


def test_copy_rate_of_a_core_around_a_round_is_known(tmp_path: Path) -> None:
    variant = COPY.variants[0]
    looks = [{"spin_s": 1.0, "copy_bytes_per_s": rate} for rate in (3e10, 2e10, 4e10)]
    for run, noted in ((OLD, []), (NEW, looks)):
        samples = samples_of(COPY, variant, run=run, rounds=3)
        provenance = provenance_of(COPY, variant, run=run) | {"conditions": noted}
        add_run(tmp_path, "box", "copy", variant.name, samples, provenance)
    found = collect(tmp_path, STUDIES).samples
    around = found.groupby(["run", "round"])["core_copies"].first()
    assert list(around[name_of(NEW)]) == pytest.approx([2e10, 2e10, math.nan], nan_ok=True)
    assert around[name_of(OLD)].isna().all()


def test_the_rounds_that_something_disturbed_are_known(tmp_path: Path) -> None:
    variant = COPY.variants[0]
    noted = {"disturbed": [{"round": 1, "why": ["others kept 3.0 cores busy"]}]}
    for run, more in ((OLD, {}), (NEW, noted)):
        samples = samples_of(COPY, variant, run=run, rounds=2)
        provenance = provenance_of(COPY, variant, run=run) | more
        add_run(tmp_path, "box", "copy", variant.name, samples, provenance)
    found = collect(tmp_path, STUDIES).samples
    marked = found[found["disturbed"]]
    assert set(zip(marked["run"], marked["round"], strict=True)) == {(name_of(NEW), 1)}
    assert not found["disturbed"].all()


def test_a_file_beyond_a_limit_leaves_out_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_machine(tmp_path, "box", CALLS, rounds=1, run=OLD)
    size = len(collect(tmp_path, STUDIES).samples)
    write_machine(tmp_path, "box", CALLS, rounds=2, run=NEW)
    monkeypatch.setattr("analysis.results.collect.MACHINE_LIMIT_SAMPLES", size)
    found = collect(tmp_path, STUDIES)
    assert (len(found.refused), len(found.samples)) == (1, size)


def test_bad_runs_do_not_count_towards_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_machine(tmp_path, "box", CALLS, rounds=1, run=OLD)
    monkeypatch.setattr("analysis.results.store.runs.MAX_FILES", 1)
    (tmp_path / "box" / "calls" / "20260303T030405Z-00000000.json").write_text("{}")
    found = collect(tmp_path, STUDIES)
    assert (len(found.refused), len(found.runs)) == (1, 1)


def test_a_run_without_its_samples_describes_no_machine(tmp_path: Path) -> None:
    for run in (OLD, NEW):
        write_machine(tmp_path, "box", CALLS, rounds=1, run=run)
    files_of(tmp_path, "box", "calls")[1].unlink()
    assert collect(tmp_path, STUDIES).machines["box"]["host"] == host_id_of(OLD)
