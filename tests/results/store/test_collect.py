"""Samples of all machines as one table, with stale results and other files."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.results.store.collect import UNKNOWN_HOST, chosen, collect
from analysis.results.store.folders import machines, variant_files
from analysis.results.store.samples import COLUMNS
from tests.synthetic import CALLS, COPY, STUDIES, add_run, provenance_of, samples_of, write_machine


def test_results_of_removed_code_are_stale(tmp_path: Path) -> None:
    write_machine(tmp_path, "box", CALLS, rounds=2)
    folder = tmp_path / "box" / "calls"
    kernel = CALLS.variant("kernel")
    samples = [replace(sample, variant="removed") for sample in samples_of(CALLS, kernel)]
    add_run(tmp_path, "box", "calls", "removed", samples, provenance_of(CALLS, kernel))
    for suffix in (".csv", ".json"):
        (folder / f"kernel{suffix}").unlink()
    found = collect(tmp_path, STUDIES).samples
    assert set(found[found["stale"]]["variant"]) == {"removed"}
    assert set(found[~found["stale"]]["variant"]) == set(CALLS.variant_names) - {"kernel"}
    assert collect(tmp_path, {}).samples["stale"].all()


def test_published_and_other_files_are_no_machine_and_no_variant(
    tmp_path: Path,
) -> None:
    write_machine(tmp_path, "box", CALLS, variants=[CALLS.variant("kernel")])
    write_machine(tmp_path, "published", CALLS)
    (tmp_path / "empty").mkdir()
    assert machines(tmp_path) == ["box"]
    assert [path.name for path in variant_files(tmp_path, "box")] == ["kernel.csv"]


def test_nothing_measured_is_an_empty_table_with_all_columns(tmp_path: Path) -> None:
    found = collect(tmp_path, STUDIES)
    assert list(found.samples.columns) == [
        "machine",
        "host",
        *COLUMNS,
        "stale",
        "disturbed",
        "core_copies",
        "named",
    ]
    assert chosen(found.samples).empty


def test_first_host_times_are_left_out_of_runs_that_discarded_none(tmp_path: Path) -> None:
    variant = COPY.variants[0]
    case = variant.cases[0].id
    for run, discarded in (("2026-01-01T00:00:00Z", 0), ("2026-01-02T00:00:00Z", 1)):
        template = samples_of(COPY, variant, run=run, rounds=1)[0]
        taken = [
            replace(template, case=case, metric=metric, value=value, round=number, sample=sample)
            for number in (0, 1)
            for metric in ("gpu_time", "host_time")
            for sample, value in enumerate((9.0, 1.0) if number == 0 else (9.0,))
        ]
        provenance = provenance_of(COPY, variant, run=run)
        provenance |= {"discarded_host_passes": discarded} if discarded else {}
        add_run(tmp_path / "results", "box", "copy", variant.name, taken, provenance)
    samples = collect(tmp_path / "results", STUDIES).samples
    by_host = samples[samples["metric"] == "host_time"].groupby(["run", "round"])["value"]
    assert by_host.agg(list).tolist() == [[1.0], [9.0], [9.0, 1.0], [9.0]]
    assert (samples["metric"] == "gpu_time").sum() == 6


def test_each_visit_of_a_round_has_a_first_host_time(tmp_path: Path) -> None:
    variant = CALLS.variant("python")
    (case,) = (case for case in variant.cases if case.visits > 1)
    template = replace(samples_of(CALLS, variant)[0], case=case.id, metric="host_time")
    values = [9.0, 1.0] * case.visits
    taken = [replace(template, value=value, sample=n) for n, value in enumerate(values)]
    add_run(tmp_path, "box", "calls", "python", taken, provenance_of(CALLS, variant))
    assert collect(tmp_path, STUDIES).samples["value"].tolist() == [1.0] * case.visits


def test_samples_beyond_the_limit_of_a_machine_leave_the_study_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, step = CALLS.variant("kernel"), COPY.variants[0]
    for machine in ("box", "other"):
        write_machine(tmp_path, machine, CALLS, variants=[kernel], rounds=2)
    write_machine(tmp_path, "box", COPY, variants=[step], rounds=2)
    of_calls, of_copy = (len(samples_of(*one, rounds=2)) for one in ((CALLS, kernel), (COPY, step)))
    limit = of_calls + of_copy
    monkeypatch.setattr("analysis.results.store.collect.MACHINE_LIMIT_SAMPLES", limit)
    assert collect(tmp_path, STUDIES).refused == {}
    monkeypatch.setattr("analysis.results.store.collect.MACHINE_LIMIT_SAMPLES", limit - 1)
    found = collect(tmp_path, STUDIES)
    assert list(found.refused) == ["box/copy"]
    assert f"expected at most {limit - 1} samples of a machine" in found.refused["box/copy"]
    assert set(found.samples["machine"]) == {"box", "other"}


def test_hosts_are_distinguished_by_the_provenance_of_runs(tmp_path: Path) -> None:
    variant = COPY.variants[0]
    for run, machine in (("2026-01-01T00:00:00Z", {}), ("2026-01-02T00:00:00Z", {"host": "abc"})):
        samples = samples_of(COPY, variant, run=run, rounds=1)
        provenance = provenance_of(COPY, variant, run=run) | {"machine": {"gpu": None, **machine}}
        add_run(tmp_path, "box", "copy", variant.name, samples, provenance)
    found = collect(tmp_path, STUDIES).samples
    assert dict(found.groupby("run")["host"].first()) == {
        "2026-01-01T00:00:00Z": UNKNOWN_HOST,
        "2026-01-02T00:00:00Z": "abc",
    }


def test_copy_rate_of_a_core_around_a_round_is_known(tmp_path: Path) -> None:
    variant = COPY.variants[0]
    looks = [{"spin_s": 1.0, "copy_bytes_per_s": rate} for rate in (3e10, 2e10, 4e10)]
    old, new = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    for run, noted in ((old, None), (new, looks)):
        samples = samples_of(COPY, variant, run=run, rounds=3)
        provenance = provenance_of(COPY, variant, run=run) | {"conditions": noted}
        add_run(tmp_path, "box", "copy", variant.name, samples, provenance)
    found = collect(tmp_path, STUDIES).samples
    around = found.groupby(["run", "round"])["core_copies"].first()
    assert list(around[new]) == pytest.approx([2e10, 2e10, math.nan], nan_ok=True)
    assert around[old].isna().all()


def test_the_rounds_that_something_disturbed_are_known(tmp_path: Path) -> None:
    variant = COPY.variants[0]
    noted = {"disturbed": [{"round": 1, "why": ["others kept 3.0 cores busy"]}]}
    for run, more in (("2026-01-01T00:00:00Z", {}), ("2026-01-02T00:00:00Z", noted)):
        samples = samples_of(COPY, variant, run=run, rounds=2)
        provenance = provenance_of(COPY, variant, run=run) | more
        add_run(tmp_path, "box", "copy", variant.name, samples, provenance)
    found = collect(tmp_path, STUDIES).samples
    marked = found[found["disturbed"]]
    assert set(zip(marked["run"], marked["round"], strict=True)) == {("2026-01-02T00:00:00Z", 1)}
    assert not found["disturbed"].all()
