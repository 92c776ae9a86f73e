"""The journal of a run: damage and repeats cost a round at most, and a run is published once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.base.errors import HotpathError
from analysis.measure.journal import Journal, discard_outdated
from analysis.measure.plan import Plan, Target, pending
from analysis.measure.publish import publish
from analysis.measure.run import run_rounds
from analysis.results.store.runs import described
from analysis.study import Study
from analysis.study.claims import Claim
from analysis.study.claims.kinds import Speedup
from tests.editing import edit_json, replace_in
from tests.measure.studies import GRID, HERE, host, measured_rounds, runs_at, write_study
from tests.synthetic import assert_measured_once


def folder_instead(path: Path) -> None:
    path.unlink(missing_ok=True)
    (path / "inner").mkdir(parents=True)


def changed(old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        assert old in path.read_bytes()
        path.write_bytes(path.read_bytes().replace(old, new, 1))

    return change


DAMAGE: list[tuple[str, Callable[[Path], object], int]] = [
    ("round-01.csv", lambda path: path.unlink(), 1),
    ("round-01.csv", folder_instead, 1),
    ("round-01.csv", lambda path: path.write_bytes(b"\0" * 99), 1),
    ("round-01.visits.csv", folder_instead, 1),
    ("round-01.visits.csv", changed(b"one", b"o\0e"), 1),
    ("journal.json", lambda path: path.write_text("[]"), 3),
    ("journal.json", changed(b'"spin_s"', b'"spin"'), 3),
    ("journal.json", folder_instead, 3),
    ("telemetry.csv", lambda path: path.write_bytes(b"\xff,,\n" + b"9," * 9 + b"\n"), 0),
]
"""Files of a journal, their damage, and the number of rounds that it costs."""


@pytest.mark.parametrize(("name", "damage", "costs"), DAMAGE)
def test_damage_of_a_journal_costs_a_round_at_most_and_is_one_line(
    finished: Plan,
    build_folder: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    damage: Callable[[Path], object],
    costs: int,
) -> None:
    """Without its beginning, a journal is of no known run."""
    damage(finished.journal / name)
    rounds = measured_rounds(finished.study)
    capsys.readouterr()
    run_rounds(finished, HERE, host(build_folder))
    assert measured_rounds(finished.study) == rounds + costs
    list(publish(finished, HERE, host(build_folder)))
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "damaged" in line]
    assert name.partition(".")[0] in line
    assert_measured_once(finished.results, finished.study.variant_names, GRID.rounds)


def test_a_round_to_be_repeated_is_missing_from_then_on(
    finished: Plan, build_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Journal(finished).repeat(1, ["noise"])
    Journal(finished).round_file(1).unlink()  # as its second try does, which may be stopped
    assert Journal(finished).missing() == [1]
    assert "damaged" not in capsys.readouterr().out
    run_rounds(finished, HERE, host(build_folder))
    assert Journal(finished).missing() == []
    list(publish(finished, HERE, host(build_folder)))
    (run,) = runs_at(finished.where, finished.study)
    assert [(one.round, one.why) for one in run.about.repeated] == [(1, ["noise"])]


def test_a_run_has_the_seconds_of_each_stage(finished: Plan, build_folder: Path) -> None:
    rounds_s = sum(record.seconds for record in Journal(finished).records.values())
    list(publish(finished, HERE, host(build_folder)))
    (run,) = runs_at(finished.where, finished.study)
    found = run.about.stages_s
    assert found is not None
    assert 0 <= found.recorded <= found.timing  # rounded to milliseconds
    assert found.start > 0
    total = found.start + found.prepare + found.check + found.timing
    assert total <= rounds_s + 0.1


@pytest.mark.usefixtures("quick")
def test_a_resumed_run_has_the_commit_and_the_bounds_of_its_first_round(
    study: Study, where: Target, build_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = Speedup(of="one", over="trouble", case="n=1", at_least=1.0)
    claim = Claim("it", "So.", None, (test,), "", bounds=("0" * 12,))

    def plan(*claims: Claim) -> Plan:
        return Plan(replace(study, claims=claims), study.variants, GRID, where)

    first, later = plan(claim), plan(replace(claim, bounds=("1" * 12,)))
    run_rounds(first, HERE, host(build_folder))
    begun = Journal(first).begin()
    Journal(later).repeat(1, ["noise"])
    monkeypatch.setattr("analysis.measure.journal.commit_of", lambda root: None)
    run_rounds(later, HERE, host(build_folder))
    list(publish(later, HERE, host(build_folder)))
    (run,) = runs_at(where, study)
    assert run.about.bounds == {"it": ["0" * 12]}
    assert (run.about.run, run.about.commit) == (begun.run, begun.commit)


def test_another_host_does_not_go_on_with_a_run(finished: Plan) -> None:
    elsewhere = replace(finished, where=replace(finished.where, host="12345678"))
    assert Journal(elsewhere).missing() == [0, 1, 2]
    assert list(discard_outdated(elsewhere, HERE)) == []
    assert Journal(finished).missing() == []


@pytest.mark.parametrize("files", [("csv",), ("csv", "json")])
def test_a_publication_that_was_stopped_is_completed_or_over(
    finished: Plan, build_folder: Path, files: tuple[str, ...]
) -> None:
    """With its description in place, the run is published: the journal's rest is of no use."""
    journal = finished.journal.rename(finished.journal.with_name("kept"))
    journal.rename(finished.journal)
    name = Journal(finished).run
    kept = {path.name: path.read_bytes() for path in finished.journal.iterdir()}
    list(publish(finished, HERE, host(build_folder)))
    for path in finished.results.iterdir():
        if path.suffix[1:] not in files:
            path.unlink()
    finished.journal.mkdir()
    for file, content in kept.items():
        (finished.journal / file).write_bytes(content)
    is_over = "json" in files
    assert Journal(finished).missing() == ([0, 1, 2] if is_over else [])
    assert (Journal(finished).run == name) != is_over
    if not is_over:
        list(publish(finished, HERE, host(build_folder)))
        assert [path.stem for path in described(finished.results)] == [name]
        assert pending(finished.study, finished.where, "default", HERE) == []


@pytest.mark.usefixtures("quick")
def test_journal_without_a_resuming_command_is_dropped_and_reported(
    tmp_path: Path, where: Target, build_folder: Path
) -> None:
    study = write_study(tmp_path / "apart", {"name": "trouble"}, {"name": "one"})
    again = Plan(study, tuple(study.shown_again("trouble")), GRID, where)
    whole = Plan(study, study.variants, GRID, where)
    for plan in (again, whole):
        run_rounds(plan, HERE, host(build_folder))
    assert list(discard_outdated(whole, HERE)) == []
    replace_in(study.folder / "trouble.py", "rounds", "round_numbers")
    changed = Plan(study, study.variants, GRID, where)
    assert len(list(discard_outdated(changed, HERE))) == 2
    assert not again.journal.exists()
    assert not whole.journal.exists()


def test_a_run_without_paths_or_ids(finished: Plan, build_folder: Path) -> None:
    here = replace(
        host(build_folder),
        command='python -m analysis.measure --config \'{"nvcc": "/home/me/cuda"}\''
        " GPU-01234567-89ab-cdef-0123-456789abcdef /tmp/01234567-89ab-cdef-0123-456789abcdef",
    )
    list(publish(finished, HERE, here))
    (path,) = described(finished.results)
    assert json.loads(path.read_text())["command"].endswith('\'{"nvcc": "cuda"}\' UUID UUID')


@pytest.mark.usefixtures("quick")
def test_a_need_that_is_no_longer_met_leaves_the_measured_rounds(
    tmp_path: Path, where: Target, build_folder: Path
) -> None:
    study = write_study(tmp_path / "needy", {"name": "one"}, {"name": "two", "needs": ["managed"]})
    plan = Plan(study, study.variants, GRID, where)
    run_rounds(plan, replace(HERE, managed=True), host(build_folder))
    Journal(plan).repeat(1, ["noise"])
    run_rounds(plan, HERE, host(build_folder))
    list(publish(plan, HERE, host(build_folder)))
    (run,) = runs_at(where, study)
    assert run.about.variants["two"].unmet is None
    assert {row.round for row in run.rows if row.variant == "two"} == {0, 2}


@pytest.mark.usefixtures("quick")
def test_a_clock_that_is_set_back_costs_no_run(
    study: Study, where: Target, build_folder: Path
) -> None:
    plan = Plan(study, study.variants, replace(GRID, rounds=1), where)
    run_rounds(plan, HERE, host(build_folder))
    record = plan.journal / "journal.json"
    earlier = dict.fromkeys(("start", "end"), "2026-01-01T00:00:00Z")
    edit_json(record, lambda data: data["rounds"]["0"].update(earlier))
    list(publish(plan, HERE, host(build_folder)))
    (run,) = runs_at(where, study)
    assert run.about.end == run.about.start


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("value", ["float('nan')", "-1.0", "1e19"])
def test_a_round_with_a_value_that_no_result_may_have_is_not_kept(
    study: Study, where: Target, build_folder: Path, value: str
) -> None:
    replace_in(study.folder / "workload.py", "[len(self.out)]", f"[{value}]")
    plan = Plan(study, study.variants, GRID, where)
    with pytest.raises(HotpathError, match=r"line 2: filled: expected 0 or numbers"):
        run_rounds(plan, HERE, host(build_folder))
    assert Journal(plan).missing() == [0, 1, 2]
