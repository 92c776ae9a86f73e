"""The journal of a run: damage, repeats and an interrupted publication cost a round at most."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.measure.journal import Journal, discard_outdated, settle
from analysis.measure.plan import PUBLISHING, Plan, Target, leftovers, pending
from analysis.measure.publish import drafted, publish
from analysis.measure.run import run_rounds
from analysis.study import Study
from analysis.study.claims import Claim
from analysis.study.claims.kinds import Speedup
from tests.editing import edit_json, replace_in
from tests.measure.conftest import NAMES
from tests.measure.studies import GRID, HERE, contents, host, measured_rounds, write_study
from tests.synthetic import assert_measured_once


def test_damaged_rounds_are_measured_again_and_no_other(
    finished: Plan, build_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = [Journal(finished).round_file(number) for number in range(GRID.rounds)]
    kept[1].write_text(kept[1].read_text()[:-20])
    kept[2].unlink()
    before = kept[0].read_bytes()
    run_rounds(finished, HERE, host(build_folder))
    output = capsys.readouterr().out
    assert "round 2 is measured again: " in output
    assert "round 3 is measured again: " in output
    assert kept[0].read_bytes() == before
    assert {s.round for s in Journal(finished).samples()} == {0, 1, 2}


def test_a_round_to_be_repeated_is_missing_from_then_on(
    finished: Plan, build_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Journal(finished).repeat(1, ["noise"])
    assert Journal(finished).missing() == [1]
    Journal(finished).round_file(1).unlink()  # as its second try does, which may be stopped
    assert Journal(finished).missing() == [1]
    assert "damaged" not in capsys.readouterr().out
    run_rounds(finished, HERE, host(build_folder))
    assert Journal(finished).missing() == []
    assert [(entry["round"], entry["why"]) for entry in Journal(finished).repeated] == [
        (1, ["noise"])
    ]


def folder_instead(path: Path) -> None:
    path.unlink()
    (path / "inner").mkdir(parents=True)


def changed(old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        assert old in path.read_bytes()
        path.write_bytes(path.read_bytes().replace(old, new, 1))

    return change


DAMAGE: list[tuple[str, Callable[[Path], object], list[int]]] = [
    ("round-01.csv", folder_instead, [1]),
    ("round-01.csv", lambda path: path.write_bytes(b"\0" * 99), [1]),
    ("round-01.json", folder_instead, [1]),
    ("round-01.json", changed(b'"spin_s"', b'"spin"'), [1]),
    ("round-01.json", lambda path: path.write_text("[]"), [1]),
    ("round-01.json", lambda path: edit_json(path, lambda d: d.update(conditions=None)), [1]),
    ("round-01.json", lambda path: edit_json(path, lambda d: d.update(seconds="long")), [1]),
    ("round-01.json", lambda path: edit_json(path, lambda d: d.update(newcomers={})), [1]),
    ("round-01.visits.csv", folder_instead, [1]),
    ("round-01.visits.csv", changed(b"one", b"o\0e"), [1]),
    ("repeated.json", lambda path: path.write_text('{"round": 1}'), []),
    ("repeated.json", lambda path: path.write_text("[1]"), []),
    ("repeated.json", lambda path: path.write_text("["), []),
    ("repeated.json", lambda path: path.mkdir(), []),
    ("bounds.json", lambda path: path.write_text("[]"), []),
    ("bounds.json", folder_instead, []),
    ("telemetry.csv", lambda path: path.mkdir(), []),
    ("telemetry.csv", lambda path: path.write_bytes(b"\0" * 99 + b"\n"), []),
    ("telemetry.csv", lambda path: path.write_bytes(b"\xff,,\n" + b"9," * 9 + b"\n"), []),
]
"""Files of a journal, their damage, and the rounds that it costs."""


@pytest.mark.parametrize(("name", "damage", "costs"), DAMAGE)
def test_damage_of_a_journal_costs_a_round_at_most_and_is_one_line(
    finished: Plan,
    where: Target,
    build_folder: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    damage: Callable[[Path], object],
    costs: list[int],
) -> None:
    damage(finished.journal / name)
    rounds = measured_rounds(finished.study)
    capsys.readouterr()
    run_rounds(finished, HERE, host(build_folder))
    assert measured_rounds(finished.study) == rounds + len(costs)
    list(publish(finished, HERE, host(build_folder)))
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "damaged" in line]
    assert name.partition(".")[0] in line
    for variant in finished.study.variants:
        path = where.root / where.machine / finished.study.name / f"{variant.name}.csv"
        assert_measured_once(path, GRID.rounds)


def test_provenance_has_the_seconds_of_each_stage(finished: Plan, build_folder: Path) -> None:
    draft, *_ = drafted(finished, HERE, host(build_folder), Journal(finished))
    found = json.loads(draft.texts["test-box/study/one.json"])["stages_s"]
    rounds_s = sum(record.seconds for record in Journal(finished).records.values())
    assert 0 <= found["recorded"] <= found["timing"]  # rounded to milliseconds
    assert found["start"] > 0
    assert sum(found.values()) - found["recorded"] <= rounds_s + 0.1


def test_raw_output_of_nvbench_is_no_damage(
    finished: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    raw = finished.journal / "round-01.nvbench.json-bin"
    raw.mkdir()
    assert Journal(finished).missing() == []
    assert raw.is_dir()
    assert "damaged" not in capsys.readouterr().out


def test_a_damaged_list_of_repeats_costs_no_round(finished: Plan) -> None:
    Journal(finished).repeat(1, ["noise"])
    (finished.journal / "repeated.json").write_text("[")
    assert Journal(finished).missing() == [1]


@pytest.mark.usefixtures("quick")
def test_resumed_run_names_the_bounds_of_its_start(
    study: Study, where: Target, build_folder: Path
) -> None:
    def published(claimed: Study) -> dict[str, Any]:
        plan = Plan(claimed, claimed.variants, GRID, where)
        run_rounds(plan, HERE, host(build_folder))
        draft, *_ = drafted(plan, HERE, host(build_folder), Journal(plan))
        texts = (draft.texts[f"test-box/study/{name}.json"] for name in claimed.variant_names)
        return {name: json.loads(text)["bounds"] for name, text in zip(NAMES, texts, strict=True)}

    test = Speedup(of="one", over="trouble", case="n=1", at_least=1.0)
    claim = Claim("it", "So.", None, (test,), "", bounds=("0" * 12,))
    first = replace(study, claims=(claim, replace(claim, id="again")))
    named = {"it": "0" * 12, "again": "0" * 12}
    assert published(first) == dict.fromkeys(NAMES, named)
    later = replace(study, claims=(replace(claim, bounds=("1" * 12,)),))
    journal = Journal(Plan(later, later.variants, GRID, where))
    journal.repeat(1, ["noise"])
    assert published(later) == dict.fromkeys(NAMES, named)
    for number in (0, 1, 2):
        Journal(Plan(later, later.variants, GRID, where)).round_file(number).unlink()
    assert published(later) == {name: {"it": "1" * 12} for name in NAMES}, "begun anew"


def test_interrupted_publication_is_completed_first(
    finished: Plan, study: Study, where: Target, build_folder: Path
) -> None:
    draft, summary, _ = drafted(finished, HERE, host(build_folder), Journal(finished))
    Journal(finished).stage(draft.texts, summary, "")
    # Published in part: samples without their provenance.
    one = where.root / where.machine / study.name / "one.csv"
    one.parent.mkdir(parents=True)
    one.write_text(draft.texts["test-box/study/one.csv"])
    before = contents(one.parent)

    assert pending(study, where, "default", HERE) == []
    assert leftovers(study, where, "default") == [finished.journal / PUBLISHING]
    assert contents(one.parent) == before
    first, *lines = settle(study, where, "default")
    assert first == "study: publishing what an earlier run has measured"
    assert lines == summary
    assert contents(where.root) == draft.texts
    assert leftovers(study, where, "default") == []
    assert not finished.journal.exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda publishing: publishing.rename(publishing.with_name(".away")) and publishing.mkdir(),
        lambda publishing: publishing.rename(publishing.with_name(".away")) and publishing.touch(),
        lambda publishing: (publishing / "outcome.json").write_text("[]"),
        lambda publishing: folder_instead(publishing / "outcome.json"),
        lambda publishing: folder_instead(publishing / "results/test-box/study/one.csv"),
        lambda publishing: (publishing / "results/test-box/machine.json").unlink(),
        lambda publishing: (publishing / "results/test-box/study/one.json").write_bytes(b"\0"),
    ],
)
def test_damage_of_what_is_published_costs_no_round(
    finished: Plan,
    study: Study,
    where: Target,
    build_folder: Path,
    damage: Callable[[Path], object],
) -> None:
    draft, summary, _ = drafted(finished, HERE, host(build_folder), Journal(finished))
    Journal(finished).stage(draft.texts, summary, "")
    damage(finished.journal / PUBLISHING)
    (line,) = settle(study, where, "default")
    assert line.endswith(": publishing starts again from the finished rounds")
    assert contents(where.root) == {}
    assert Journal(finished).missing() == []
    list(publish(finished, HERE, host(build_folder)))
    assert pending(study, where, "default", HERE) == []


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
