"""Runs of a variant: kept, fresh, and removed for space."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from analysis.results.store.provenance import (
    CorruptResults,
    provenance_text,
    read_provenance,
)
from analysis.results.store.results import load_variant
from analysis.results.store.samples import KEPT_RUNS, checksum
from analysis.study.source import fingerprint
from tests.editing import edit_json
from tests.results.store.runs import RUNS, runs_of, store
from tests.synthetic import CALLS, add_run, provenance_of, samples_of, shrink

OTHER = "f" * 64


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def drop_one(root: Path) -> None:
    """Limit the machine's space to all of its runs but one."""
    shrink(root, "box", size_of(root / "box") - 1)


def test_the_newest_runs_are_kept_newest_first(tmp_path: Path) -> None:
    for run in RUNS:
        path = store(tmp_path, run)
    newest = RUNS[::-1][:KEPT_RUNS]
    assert runs_of(path) == newest
    loaded = load_variant(path)
    assert list(loaded.run_provenance()) == newest
    assert loaded.provenance["samples_sha256"] == checksum(path)
    assert loaded.fresh_runs(fingerprint(CALLS, CALLS.variant("kernel"))) == newest


MANY_RUNS = [f"2026-01-{day:02}T03:04:05Z" for day in range(1, KEPT_RUNS + 5)]


def add_run_of(
    root: Path, run: str, host: str, cases: slice = slice(None), source: str = ""
) -> list[str]:
    """Add a run of these cases on `host`; the runs that are then kept, newest first. `source`: hash
    of other code than the current one."""
    variant = CALLS.variant("python")
    chosen = {case.id for case in variant.cases[cases]}
    samples = [s for s in samples_of(CALLS, variant, run=run, rounds=2) if s.case in chosen]
    provenance = provenance_of(CALLS, variant, run=run)
    provenance["machine"] = {**provenance["machine"], "host": host}
    provenance["source_sha256"] = source or provenance["source_sha256"]
    add_run(root, "box", CALLS.name, variant.name, samples, provenance)
    (root / "box" / "machine.json").write_text('{"gpu": null}')
    return list(load_variant(root / "box" / CALLS.name / "python.csv").run_provenance())


def test_further_runs_of_one_host_replace_no_run_of_another(tmp_path: Path) -> None:
    first, second, *others = MANY_RUNS
    add_run_of(tmp_path, first, "a")
    add_run_of(tmp_path, second, "b")
    for run in others:
        kept = add_run_of(tmp_path, run, "c")
    assert kept == [*others[::-1][: KEPT_RUNS - 2], second, first]


def test_the_oldest_of_as_many_hosts_is_dropped(tmp_path: Path) -> None:
    for number, run in enumerate(MANY_RUNS):
        kept = add_run_of(tmp_path, run, f"host {number}")
    assert kept == MANY_RUNS[::-1][:KEPT_RUNS]


def test_runs_of_older_code_are_dropped_before_further_runs_of_one_host(tmp_path: Path) -> None:
    *old, first, second = MANY_RUNS[: KEPT_RUNS + 2]
    for number, run in enumerate(old):
        add_run_of(tmp_path, run, f"host {number}", source=OTHER)
    add_run_of(tmp_path, first, "a")
    assert add_run_of(tmp_path, second, "a") == [second, first, *old[:1:-1]]


def test_a_run_with_cases_of_its_own_outlives_newer_ones(tmp_path: Path) -> None:
    wide, *narrow = MANY_RUNS
    add_run_of(tmp_path, wide, "a")
    for run in narrow:
        kept = add_run_of(tmp_path, run, "a", slice(1))
    assert kept == [*narrow[::-1][: KEPT_RUNS - 1], wide]


def test_a_wide_run_outlives_narrow_ones_of_other_hosts(tmp_path: Path) -> None:
    wide, *narrow = MANY_RUNS
    add_run_of(tmp_path, wide, "wide")
    for number, run in enumerate(narrow):
        kept = add_run_of(tmp_path, run, f"host {number}", slice(1))
    assert kept == [*narrow[::-1][: KEPT_RUNS - 1], wide]


def test_of_one_hosts_runs_the_one_with_the_fewest_cases_is_dropped(tmp_path: Path) -> None:
    narrow, wide, *newer = MANY_RUNS[: KEPT_RUNS + 1]
    add_run_of(tmp_path, wide, "a")
    add_run_of(tmp_path, narrow, "a", slice(1))
    for number, run in enumerate(newer):
        kept = add_run_of(tmp_path, run, f"host {number}")
    assert kept == [*newer[::-1], wide]


def test_a_narrow_run_is_dropped_before_an_older_wide_one(tmp_path: Path) -> None:
    older, narrow, wide, *newer = MANY_RUNS[: KEPT_RUNS + 1]
    for run, cases in ((older, slice(None)), (narrow, slice(1)), (wide, slice(None))):
        add_run_of(tmp_path, run, "a", cases)
    for number, run in enumerate(newer):
        kept = add_run_of(tmp_path, run, f"host {number}")
    assert kept == [*newer[::-1], wide, older]


def test_provenance_has_a_line_a_key_and_a_line_an_earlier_run(tmp_path: Path) -> None:
    for run in RUNS[:3]:
        path = store(tmp_path, run).with_suffix(".json")
    text = path.read_text()
    document = read_provenance(path)
    assert len(text.splitlines()) == 2 + len(document) + 1 + len(document["runs"])
    assert provenance_text(document) == text
    assert json.loads(provenance_text(document | {"runs": []})) == document | {"runs": []}


def test_an_earlier_run_is_stored_as_what_differs(tmp_path: Path) -> None:
    for run in RUNS[:2]:
        path = store(tmp_path, run).with_suffix(".json")
    newest, older = read_provenance(path), read_provenance(path)["runs"][0]
    older["machine"]["driver"] = newest["machine"].pop("driver", "1.2")
    newest.update(energy_j=None, dirty=False, added=[1])
    older.update(energy_j=2.0, dirty=0)
    path.write_text(provenance_text(newest | {"runs": [older]}))
    (entry,) = json.loads(path.read_text())["runs"]
    assert entry["-"] == ["added"]
    assert entry["energy_j"] == 2.0 and entry["dirty"] is not False
    assert set(entry["machine"]) == {"host", "driver"}
    edit_json(path, lambda document: document.pop("added"))
    with pytest.raises(CorruptResults, match=r"runs\.0\.-: expected keys of the newest run"):
        read_provenance(path)


def test_a_file_with_whole_earlier_runs_reads_the_same(tmp_path: Path) -> None:
    for run in RUNS[:3]:
        path = store(tmp_path, run).with_suffix(".json")
    document = read_provenance(path)
    path.write_text(json.dumps(document))
    assert read_provenance(path) == document


def test_runs_that_were_measured_in_another_way_are_not_kept(tmp_path: Path) -> None:
    path = store(tmp_path, RUNS[0])
    kernel = CALLS.variant("kernel")
    changed = provenance_of(CALLS, kernel, run=RUNS[1])
    changed["method_version"] += 1
    add_run(tmp_path, "box", "calls", "kernel", samples_of(CALLS, kernel, run=RUNS[1]), changed)
    assert runs_of(path) == [RUNS[1]]
    assert list(load_variant(path).run_provenance()) == [RUNS[1]]


def test_run_added_again_replaces_itself(tmp_path: Path) -> None:
    for run in (RUNS[0], RUNS[1], RUNS[1]):
        path = store(tmp_path, run)
    assert runs_of(path) == [RUNS[1], RUNS[0]]
    once = samples_of(CALLS, CALLS.variant("kernel"), rounds=2)
    assert len(load_variant(path).samples) == 2 * len(once)


def test_earlier_provenance_is_kept_with_its_samples(tmp_path: Path) -> None:
    store(tmp_path, RUNS[0])
    path = tmp_path / "box" / "calls" / "kernel.csv"
    kernel = CALLS.variant("kernel")
    changed = provenance_of(CALLS, kernel, run=RUNS[1]) | {"source_sha256": OTHER}
    add_run(tmp_path, "box", "calls", "kernel", samples_of(CALLS, kernel, run=RUNS[1]), changed)
    loaded = load_variant(path)
    assert loaded.fresh_runs(fingerprint(CALLS, kernel)) == [RUNS[0]]
    assert loaded.fresh_runs(OTHER) == [RUNS[1]]
    assert loaded.fresh_runs("0" * 64) == []


def test_a_run_of_another_method_is_not_fresh(tmp_path: Path) -> None:
    kernel = CALLS.variant("kernel")
    old = provenance_of(CALLS, kernel) | {"method_version": 0}
    add_run(tmp_path, "box", "calls", "kernel", samples_of(CALLS, kernel), old)
    path = tmp_path / "box" / "calls" / "kernel.csv"
    assert load_variant(path).fresh_runs(fingerprint(CALLS, kernel)) == []


def test_shrinking_drops_the_oldest_extra_runs_of_the_machine(tmp_path: Path) -> None:
    for run in RUNS[1:4]:
        python = store(tmp_path, run, variant="python")
    for run in (RUNS[0], RUNS[4]):
        kernel = store(tmp_path, run)

    shrink(tmp_path, "box", size_of(tmp_path / "box"))
    assert (len(runs_of(kernel)), len(runs_of(python))) == (2, 3)
    drop_one(tmp_path)
    assert (runs_of(kernel), runs_of(python)) == ([RUNS[4]], RUNS[3:0:-1])
    drop_one(tmp_path)
    assert (runs_of(kernel), runs_of(python)) == ([RUNS[4]], RUNS[3:1:-1])
    for path in (kernel, python):
        loaded = load_variant(path)
        assert list(loaded.run_provenance()) == runs_of(path)
        assert loaded.provenance["samples_sha256"] == checksum(path)


@pytest.mark.parametrize(
    ("of_kernel", "of_python"),
    [
        pytest.param(RUNS[:3], RUNS[1:5], id="an interval stands on no fourth"),
        pytest.param(RUNS[:4], RUNS[1:6], id="a fifth adds less than a fourth"),
    ],
)
def test_shrinking_removes_runs_of_variants_with_more_newer_ones(
    tmp_path: Path, of_kernel: list[str], of_python: list[str]
) -> None:
    for run in of_kernel:
        kernel = store(tmp_path, run)
    for run in of_python:
        python = store(tmp_path, run, variant="python")
    drop_one(tmp_path)
    assert (runs_of(kernel), runs_of(python)) == (of_kernel[::-1], of_python[:0:-1])


def test_shrinking_keeps_a_run_that_others_are_compared_in(tmp_path: Path) -> None:
    # All were measured in RUNS[0]; then one of them again, and another after its code had changed.
    for variant in ("kernel", "python", "again"):
        store(tmp_path, RUNS[0], variant=variant)
    store(tmp_path, RUNS[1], variant="python")
    again = store(tmp_path, RUNS[2], variant="python")
    edited = store(tmp_path, RUNS[2], variant="again")
    edit_json(edited.with_suffix(".json"), lambda d: d["runs"][0].update(source_sha256="0" * 64))

    drop_one(tmp_path)
    assert (runs_of(again), runs_of(edited)) == ([RUNS[2], RUNS[1], RUNS[0]], [RUNS[2]])
    drop_one(tmp_path)
    assert runs_of(again) == [RUNS[2], RUNS[0]]
    drop_one(tmp_path)
    assert runs_of(again) == [RUNS[2]]


def test_results_that_cannot_shrink_enough_are_an_error_that_drops_no_newest_run(
    tmp_path: Path,
) -> None:
    for run in RUNS[:2]:
        path = store(tmp_path, run)
    with pytest.raises(HotpathError, match=r"box: more than 10 bytes with one run of each"):
        shrink(tmp_path, "box", 10)
    assert runs_of(path) == [RUNS[1]]
