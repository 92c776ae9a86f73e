"""Samples of all machines as one table, with stale ones, and the runs that measuring deletes."""

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.results.collect import collect
from analysis.results.store import METHOD_VERSION
from analysis.results.store.keys import RunFile
from analysis.results.store.runs import Run, codes_of, discard_superfluous, superfluous
from analysis.results.tables.summary import round_table
from tests.editing import edit_json
from tests.synthetic import (
    CALLS,
    COPY,
    STUDIES,
    files_of,
    host_id_of,
    make_stale,
    name_of,
    samples_of,
    write_machine,
    write_run,
)

OLD, MIDDLE, NEW = (f"2026-01-0{day}T00:00:00Z" for day in (1, 2, 3))
KERNEL, COPIED = CALLS.variant("kernel"), COPY.variants[0]


def test_a_result_is_fresh_by_variant_and_method(tmp_path: Path) -> None:
    write_machine(tmp_path, "box", CALLS, rounds=1)
    removed = [replace(sample, variant="removed") for sample in samples_of(CALLS, KERNEL)]
    write_run(tmp_path, "box", CALLS, removed, {"removed": codes_of(CALLS)[KERNEL.name]})
    (path,) = files_of(tmp_path, "box", CALLS.name)
    make_stale(path, "kernel")
    samples = collect(tmp_path, STUDIES).samples
    assert set(samples[samples["stale"]]["variant"]) == {"kernel", "removed"}
    edit_json(path.with_suffix(".json"), lambda run: run.update(method_version=1))
    for known in (STUDIES, {}):
        assert collect(tmp_path, known).samples["stale"].all()


@pytest.mark.parametrize(("key", "value"), [("case", "calls=101"), ("metric", "gone")])
def test_fresh_samples_of_a_gone_case_or_metric_go(tmp_path: Path, key: str, value: str) -> None:
    """The run stays as good as it was, for the sake of its other samples. Stale ones are shown."""
    gone, *others = samples_of(CALLS, KERNEL, rounds=1)
    changed = [type(gone)(**{**vars(gone), key: value}), *others]
    write_run(tmp_path, "box", CALLS, changed)
    found = collect(tmp_path, STUDIES)
    assert found.refused == {} and len(found.samples) == len(others)
    make_stale(files_of(tmp_path, "box", CALLS.name)[0])
    assert value in set(collect(tmp_path, STUDIES).samples[key])


def test_too_many_samples_leave_older_runs_out(
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
    looks = [{"copy_bytes_per_s": rate} for rate in (3e10, 2e10, 4e10)]
    noted: Any = {"disturbed": [{"round": 1, "why": ["others kept 3.0 cores busy"]}]}
    for run, cores, more in ((OLD, 8, {}), (NEW, 16, {"conditions": looks, **noted})):
        samples = samples_of(COPY, COPIED, run=run, rounds=3)
        write_run(tmp_path, "box", COPY, samples, host={"cores": cores}, **more)
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
CELLS = {"a": ("kernel", CALLS.headline), "b": ("python", CALLS.headline)}
STATES = st.dictionaries(st.sampled_from("ab"), st.sampled_from(["measured", "skipped", "stale"]))
File = tuple[str, dict[str, str]]
"""The host of a file, and the state of its variants."""
FILES = st.lists(st.tuples(st.sampled_from(HOSTS), STATES), max_size=12)
"""Files, oldest first."""
KEPT = 2


def run(number: int, host: str, states: dict[str, str]) -> Run:
    codes = {**codes_of(CALLS)}
    codes |= {CELLS[name][0]: "0" * 64 for name, state in states.items() if state == "stale"}
    about: Any = RunFile.model_construct(
        run=f"{number}",
        method_version=METHOD_VERSION,
        host=SimpleNamespace(id=host),
        variants={name: SimpleNamespace(source_sha256=code) for name, code in codes.items()},
    )
    rows: Any = [SimpleNamespace(cell=CELLS[n], status=state) for n, state in states.items()]
    return Run(about, rows)


@given(FILES)
def test_only_files_that_no_figure_needs_go(files: list[tuple[str, dict[str, str]]]) -> None:
    """A measured cell needs KEPT newer runs and one on its host, a skipped one a newer one of its
    host, and a stale one any newer measured one."""

    def is_needed(number: int, cell: str) -> bool:
        host, states = files[number]
        newer = [(host, states.get(cell, "stale")) for host, states in files[number + 1 :]]
        measured = [host for host, state in newer if state == "measured"]
        match states[cell]:
            case "measured":
                return host not in measured or len(measured) < KEPT
            case "skipped":
                return host not in [host for host, state in newer if state != "stale"]
        return not measured

    runs = [run(number, *file) for number, file in enumerate(files)][::-1]
    with patch("analysis.results.store.runs.KEPT_RUNS", KEPT):
        gone = {about.file_name for about in superfluous(runs, CALLS)}
    for number, (_, states) in enumerate(files):
        assert (f"{number}.json" in gone) != any(is_needed(number, cell) for cell in states)


def test_measuring_deletes_old_files_whole_and_no_bad_one(tmp_path: Path) -> None:
    for day in range(1, 12):
        samples = samples_of(CALLS, KERNEL, run=f"2026-01-{day:02}T03:04:05Z", rounds=1)
        write_run(tmp_path, "box", CALLS, samples, host={"host": HOSTS[0]})
    bad, *runs = files_of(tmp_path, "box", CALLS.name)
    bad.write_text("damaged")
    deleted = discard_superfluous(bad.parent, CALLS)
    assert deleted == [f"{path.stem}.json" for path in runs[1::-1]]
    assert {*bad.parent.glob("*.csv")} == {bad, *runs[2:]}
