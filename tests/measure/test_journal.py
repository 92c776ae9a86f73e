"""The journal of a run: damage and repeats cost a round at most, and a run is published once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.measure.journal import Journal
from analysis.measure.places import Place
from analysis.measure.plan import Plan, pending
from analysis.measure.publish import publish
from analysis.results.store.keys import Disturbance
from analysis.results.store.runs import described
from analysis.study import Study
from analysis.study.claims import Claim
from analysis.study.claims.kinds import Comparison
from tests.editing import edit_json, replace_in
from tests.measure.studies import (
    GRID,
    host,
    measure,
    measured_rounds,
    only_run,
    plan_of,
    write_study,
)
from tests.synthetic import assert_measured_once

pytestmark = pytest.mark.usefixtures("quick")


@pytest.fixture
def finished(quick: None, study: Study, place: Place) -> Plan:
    """A plan all of whose rounds are in its journal."""
    return measure(plan_of(study, place)).plan


def folder_instead(path: Path) -> None:
    path.unlink(missing_ok=True)
    (path / "inner").mkdir(parents=True)


DAMAGE: list[tuple[str, Callable[[Path], object], int]] = [
    ("round-01.csv", lambda path: path.unlink(), 1),
    ("round-01.csv", folder_instead, 1),
    ("round-01.csv", lambda path: path.write_bytes(b"\0" * 99), 1),
    ("journal.json", lambda path: path.write_text("[]"), 3),
    ("journal.json", lambda path: replace_in(path, '"spin_s"', '"spin"'), 3),
    ("journal.json", lambda path: replace_in(path, "one", "o\0e"), 3),
    ("journal.json", folder_instead, 3),
]
"""Files of a journal, their damage, and the number of rounds that it costs."""


@pytest.mark.parametrize(("name", "damage", "costs"), DAMAGE)
def test_damage_of_a_journal_costs_a_round_at_most_and_is_one_line(
    finished: Plan,
    capsys: pytest.CaptureFixture[str],
    name: str,
    damage: Callable[[Path], object],
    costs: int,
) -> None:
    """Without its beginning, a journal is of no known run."""
    damage(finished.journal / name)
    rounds = measured_rounds(finished.study)
    capsys.readouterr()
    list(publish(measure(finished), host()))
    assert measured_rounds(finished.study) == rounds + costs
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "damaged" in line]
    assert name in line
    assert_measured_once(finished.results, finished.study.variant_names, GRID.rounds)


def test_a_round_to_be_repeated_is_missing_from_then_on(
    finished: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    Journal(finished).repeat(Disturbance(round=1, why=["noise"]))
    Journal(finished).clear(1)  # as its second try does, which may be stopped
    assert Journal(finished).missing() == [1]
    list(publish(measure(finished), host()))
    assert "damaged" not in capsys.readouterr().out
    about = only_run(finished.place, finished.study).about
    assert [(one.round, one.why) for one in about.repeated] == [(1, ["noise"])]


def test_a_resumed_run_has_the_name_the_commit_and_the_bounds_of_its_first_round(
    study: Study, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = Comparison(kind="speedup", of="one", over="trouble", case="n=1", at_least=1.0)
    claims = [Claim(id="it", says="So.", test=test) for _ in "01"]
    for claim, digit in zip(claims, "01", strict=True):
        claim._bounds = (digit * 12,)
    first, later = (plan_of(replace(study, claims=(claim,)), place) for claim in claims)
    begun = measure(first).begun
    Journal(later).repeat(Disturbance(round=1, why=["noise"]))
    monkeypatch.setattr("analysis.measure.journal.commit_of", None)
    list(publish(measure(later), host()))
    about = only_run(place, study).about
    assert about.bounds == {"it": ["0" * 12]}
    assert (about.run, about.commit) == (begun.run, begun.commit)


def test_rounds_of_other_code_are_dropped_in_a_line(
    finished: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another host and another grid have a journal of their own."""
    elsewhere = replace(finished, place=replace(finished.place, host="12345678"))
    full = replace(finished, grid=replace(GRID, name="full"))
    for other in (elsewhere, full):
        assert Journal(other).missing() == [0, 1, 2]
    source = finished.study.folder / "one.py"
    replace_in(source, '"""Fill at once."""', "# F.")
    assert Journal(finished).missing() == []
    assert "interrupted run" not in capsys.readouterr().out
    with_fewer = replace(finished, variants=finished.variants[:1])
    kept = shutil.copytree(finished.journal, finished.journal.with_name("kept"))
    for changed in (with_fewer, finished):
        if changed is finished:
            shutil.copytree(kept, finished.journal)
            replace_in(source, "len(out)", "1 * len(out)")
        assert Journal(changed).missing() == [0, 1, 2]
        assert "rounds of an interrupted run of other code" in capsys.readouterr().out
        assert not finished.journal.exists()


@pytest.mark.parametrize("files", [("csv",), ("csv", "json")])
def test_a_publication_that_was_stopped_is_completed_or_over(
    finished: Plan, files: tuple[str, ...]
) -> None:
    """With its description in place, the run is published: the journal's rest is of no use."""
    name = Journal(finished).run
    kept = {path.name: path.read_bytes() for path in finished.journal.iterdir()}
    list(publish(Journal(finished), host()))
    for path in finished.results.iterdir():
        if path.suffix[1:] not in files:
            path.unlink()
    finished.journal.mkdir()
    for file, content in kept.items():
        (finished.journal / file).write_bytes(content)
    is_over = "json" in files
    again = Journal(finished)
    assert again.missing() == ([0, 1, 2] if is_over else [])
    assert (again.run == name) != is_over
    if not is_over:
        list(publish(again, host()))
        assert [path.stem for path in described(finished.results)] == [name]
        assert pending(finished.study, finished.place, "default") == []


def test_a_run_without_paths_or_ids(finished: Plan) -> None:
    here = host(
        command='python -m analysis.measure --config \'{"nvcc": "/home/me/cuda"}\''
        " GPU-01234567-89ab-cdef-0123-456789abcdef /tmp/01234567-89ab-cdef-0123-456789abcdef",
    )
    list(publish(Journal(finished), here))
    (path,) = described(finished.results)
    assert json.loads(path.read_text())["command"].endswith('\'{"nvcc": "cuda"}\' UUID UUID')


def test_a_need_that_is_no_longer_met_leaves_the_measured_rounds(
    tmp_path: Path, place: Place
) -> None:
    study = write_study(tmp_path / "needy", {"name": "one"}, {"name": "two", "needs": ["managed"]})
    measure(plan_of(study, replace(place, managed=True))).repeat(
        Disturbance(round=1, why=["noise"])
    )
    list(publish(measure(plan_of(study, place)), host()))
    run = only_run(place, study)
    assert run.about.variants["two"].unmet is None
    assert {row.round for row in run.rows if row.variant == "two"} == {0, 2}


def test_a_clock_that_is_set_back_costs_no_run(study: Study, place: Place) -> None:
    plan = plan_of(study, place, rounds=1)
    measure(plan)
    earlier = dict.fromkeys(("start", "end"), "2026-01-01T00:00:00Z")
    edit_json(plan.journal / "journal.json", lambda data: data["rounds"][0].update(earlier))
    list(publish(Journal(plan), host()))
    about = only_run(place, study).about
    assert about.end == about.start
