"""The committed results."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from analysis import ROOT
from analysis.results.store.folders import MACHINE_LIMIT_BYTES, machines, variant_files
from analysis.results.store.results import VariantResults, load_variant
from analysis.results.store.samples import KEPT_RUNS, to_text
from analysis.site.facts.captures import read_events

COMMITTED = ROOT / "results"
TIMELINES = sorted(COMMITTED.glob("*/*/*.timeline.csv"))


@cache
def load_machine(machine: str) -> Mapping[Path, VariantResults]:
    """All results of a machine, by file."""
    return {path: load_variant(path) for path in variant_files(COMMITTED, machine)}


@pytest.mark.parametrize("machine", machines(COMMITTED))
class TestCommitted:
    """The committed results."""

    def test_every_file_loads_and_has_its_name(self, machine: str) -> None:
        for path, loaded in load_machine(machine).items():
            provenance = loaded.provenance
            assert (provenance["study"], provenance["variant"]) == (path.parent.name, path.stem)
            assert to_text(loaded.samples) == path.read_text()
            assert {sample.run for sample in loaded.samples} == set(loaded.run_provenance())

    def test_it_is_small(self, machine: str) -> None:
        files = [path for path in (COMMITTED / machine).rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) <= MACHINE_LIMIT_BYTES

    def test_as_many_runs_as_are_kept_fit(self, machine: str) -> None:
        most = 0.0
        for path, loaded in load_machine(machine).items():
            runs = len(loaded.run_provenance())
            of_runs = path.stat().st_size + path.with_suffix(".json").stat().st_size
            captures = sum(one.stat().st_size for one in path.parent.glob(f"{path.stem}.*.csv"))
            most += of_runs / runs * KEPT_RUNS + captures
        assert most <= 0.75 * MACHINE_LIMIT_BYTES

    def test_it_was_measured_from_clean_commits(self, machine: str) -> None:
        for path, loaded in load_machine(machine).items():
            for run, entry in loaded.run_provenance().items():
                assert entry["dirty"] is False, f"{path}: {run}"
                assert len(entry["commit"]) == 40, f"{path}: {run}"
                assert "bounds" in entry, f"{path}: {run}"

    def test_every_value_was_verified(self, machine: str) -> None:
        for path, loaded in load_machine(machine).items():
            for sample in loaded.samples:
                assert sample.verified == (sample.status == "ok"), f"{path}: {sample}"


@pytest.mark.parametrize("path", TIMELINES, ids=lambda path: path.name)
def test_real_timelines_are_in_order_and_the_host_comes_first(path: Path) -> None:
    events = read_events(path)
    assert events["start"].iloc[0] == 0
    assert events["start"].is_monotonic_increasing
    assert (events["end"] >= events["start"]).all()
    assert set(events["kind"]) <= {"host call", "kernel", "memcpy", "memset"}
    calls, work = (events[events["stream"].isna() == is_host] for is_host in (True, False))
    assert set(calls["kind"]) <= {"host call"}
    assert "host call" not in set(work["kind"])
    launched = work.merge(calls, on="correlation", suffixes=("", "_call"))
    assert (launched["start"] >= launched["start_call"]).all()
