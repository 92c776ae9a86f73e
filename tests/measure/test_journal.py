"""The journal of a run: what is finished is kept, damage is noticed, a run is published once."""

from __future__ import annotations

import shutil
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
from analysis.study.claims.claim import Comparison
from tests.editing import edit_json, replace_in
from tests.measure.studies import (
    GRID,
    host,
    measure,
    only_run,
    plan_of,
    run,
    started_rounds,
    write_study,
)
from tests.synthetic import assert_measured_once


@pytest.fixture
def finished(build_folder: Path, study: Study, place: Place) -> Plan:
    """A plan all of whose rounds are in its journal."""
    return measure(plan_of(study, place)).plan


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("trouble,n=1,1,", "trouble,n=1,0,0,"),
        ("trouble,n=1", "t\0"),
        ('"spin_s"', '"spin"'),
        ('"telemetry":"', '"telemetry":"more,'),
    ],
)
def test_damage_costs_a_round_and_is_a_line(
    finished: Plan, capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    replace_in(finished.journal / "round-01.json", old, new)
    (finished.journal / "round.nvbench.json").touch()
    rounds = started_rounds(finished.study)
    capsys.readouterr()
    run(finished)
    assert started_rounds(finished.study) == rounds + 1
    assert capsys.readouterr().out.count("a round is dropped: ") == 1
    assert_measured_once(finished.results, finished.study.variant_names, GRID.rounds)


def test_a_resumed_run_has_the_name_the_commit_and_the_bounds_of_its_first_round(
    study: Study,
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A disturbed round is repeated by the same command, even if its first try was stopped. A clock
    that is set back costs nothing."""
    test = Comparison(kind="speedup", of="one", over="trouble", case="n=1", at_least=1.0)
    claims = [Claim(id="it", says="So.", test=test) for _ in "01"]
    for claim, digit in zip(claims, "01", strict=True):
        claim._bounds = (digit * 12,)
    first, later = (plan_of(replace(study, claims=(claim,)), place) for claim in claims)
    begun = measure(first).begun
    edit_json(first.journal / "round-01.json", lambda record: record.update(why=["noise"]))
    earlier = {"end": "2026-01-01T00:00:00Z"}
    edit_json(first.journal / "round-02.json", lambda record: record.update(earlier))
    assert Journal(later).to_measure() == [1]
    monkeypatch.setattr("analysis.measure.journal.commit_of", None)
    run(later)
    printed = capsys.readouterr().out
    assert "dropped" not in printed and "left; it is repeated: noise" in printed
    about = only_run(place, study).about
    assert about.bounds == {"it": ["0" * 12]}
    assert about.repeated == [Disturbance(round=1, why=["noise"])]
    assert (about.run, about.commit) == (begun.run, begun.commit)


def test_rounds_of_other_code_are_dropped_in_a_line(
    finished: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another host and another grid have a journal of their own."""
    elsewhere = replace(finished, place=replace(finished.place, host="12345678"))
    for other in (elsewhere, replace(finished, grid=replace(GRID, name="full"))):
        assert Journal(other).to_measure() == [0, 1, 2]
    source = finished.study.folder / "one.py"
    replace_in(source, '"""Fill at once."""', "# F.")
    assert Journal(replace(finished)).to_measure() == []
    assert "dropped" not in capsys.readouterr().out
    replace_in(source, "len(out)", "1 * len(out)")
    assert Journal(replace(finished)).to_measure() == [0, 1, 2]
    assert "round-02.json: the code or settings have changed" in capsys.readouterr().out
    assert not finished.journal.exists()


@pytest.mark.parametrize("files", [("csv",), ("csv", "json")])
def test_a_publication_that_was_stopped_is_completed_or_over(
    finished: Plan, files: tuple[str, ...]
) -> None:
    """With its description in place, the run is published: the journal's rest is of no use."""
    name = Journal(finished).begun.run
    kept = shutil.copytree(finished.journal, finished.journal.with_name("kept"))
    list(publish(Journal(finished), host()))
    for path in finished.results.iterdir():
        if path.suffix[1:] not in files:
            path.unlink()
    shutil.copytree(kept, finished.journal)
    is_over = "json" in files
    again = Journal(finished)
    assert again.to_measure() == ([0, 1, 2] if is_over else [])
    assert (again.begun.run == name) != is_over
    if not is_over:
        list(publish(again, host()))
        assert [path.stem for path in described(finished.results)] == [name]
        assert pending(finished.study, finished.place, "default") == []


def test_a_need_that_is_no_longer_met_leaves_the_measured_rounds(
    tmp_path: Path, place: Place
) -> None:
    study = write_study(tmp_path / "needy", {"name": "one"}, {"name": "two", "needs": ["managed"]})
    plan = plan_of(study, replace(place, managed=True))
    measure(plan)
    (plan.journal / "round-01.json").unlink()
    run(plan_of(study, place))
    found = only_run(place, study)
    assert found.about.variants["two"].unmet is None
    assert {row.round for row in found.rows if row.variant == "two"} == {0, 2}
