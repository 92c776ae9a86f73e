"""When bounds were set, and that only later runs are judged by them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.claims.__main__ import main, set_by
from analysis.claims.bounds import FILE, BoundRow, digests, read_bounds
from analysis.errors import HotpathError
from analysis.facts.study_facts import StudyFacts
from analysis.records import write_records
from analysis.report.fragments import Place
from analysis.report.ledger import claims_of as page_of
from analysis.schema import read_yaml
from analysis.study import Study
from tests.claims.studies import (
    COUNTED,
    NEW,
    OLD,
    SECONDS,
    SPEEDUP,
    UNITS,
    add_samples,
    claim,
    claims_of,
    count,
    describe,
    measure,
    publish,
    read,
    write_study,
)
from tests.repository import STUDIES
from tests.synthetic import samples_of, write_description

OLDEST = "2025-12-31T00:00:00Z"
BETWEEN, LATER = "2026-01-01T12:00:00Z", "2026-01-03T00:00:00Z"
COMMIT = "0123456789ab"
FOURFOLD = claim(**{**SPEEDUP, "at_least": 3})


def write_bounded(
    root: Path,
    set_at: str,
    entry: Mapping[str, Any] = FOURFOLD,
    known: Mapping[str, Any] = FOURFOLD,
) -> Study:
    """A study with the claim `entry`, and the bound of `known` set at a moment."""
    (root / "copy").mkdir()
    row = BoundRow("it", digests(describe(known))["it"], COMMIT, set_at)
    write_records(root / "copy" / FILE, BoundRow, [row])
    return write_study(root, entry)


def measure_twice(root: Path, study: Study) -> dict[str, Any]:
    """The claim's row, where `fast` is no faster in the older run."""
    measure(root / "results", study, {**SECONDS, "fast": 8e-3}, run=OLD)
    measure(root / "results", study, run=NEW)
    (row,) = claims_of(root / "results", study)
    return row


def test_only_runs_later_than_the_bound_judge_it(tmp_path: Path) -> None:
    study = write_bounded(tmp_path, BETWEEN)
    # Of three runs, those before the bound would decide.
    measure(tmp_path / "results", study, {**SECONDS, "fast": 8e-3}, run=OLDEST)
    row = measure_twice(tmp_path, study)
    assert (row["verdict"], row["bound"]) == ("holds", "before")
    assert (row["commit"], row["set_at"]) == (COMMIT, BETWEEN)
    assert row["measured"] == pytest.approx(4, rel=1e-3)


def test_without_a_later_run_the_bound_was_set_afterwards(tmp_path: Path) -> None:
    study = write_bounded(tmp_path, LATER)
    row = measure_twice(tmp_path, study)
    assert (row["verdict"], row["bound"]) == ("holds", "afterwards")
    assert (row["commit"], row["set_at"]) == (COMMIT, LATER)
    place = Place(tmp_path / "site", "")
    page = page_of(StudyFacts(read(tmp_path, study), study), place)
    assert "- On box, by a bound that is ours, set afterwards: 1 holds." in page
    folded = (place.site / "evidence" / "copy" / "claims" / "it.html").read_text()
    assert f"since {LATER}, {COMMIT}" in folded
    assert ">holds</span><br>ours, set afterwards" in folded


def test_a_run_that_began_as_the_bound_was_set_is_no_later_one(tmp_path: Path) -> None:
    assert measure_twice(tmp_path, write_bounded(tmp_path, NEW))["bound"] == "afterwards"


def test_a_bound_that_was_changed_is_set_afterwards_until_a_commit_is_known(tmp_path: Path) -> None:
    changed = claim(**{**SPEEDUP, "at_least": 3.5})
    row = measure_twice(tmp_path, write_bounded(tmp_path, BETWEEN, changed))
    assert (row["bound"], row["commit"], row["set_at"]) == ("afterwards", "", "")


def test_a_profile_judges_bounds_that_are_older(tmp_path: Path) -> None:
    test = {"kind": "counts_per", "of": "fast", "counter": "lts__t_sectors.sum", "per": COUNTED}
    entry = claim(**test, at_least=3)
    study = write_bounded(tmp_path, "2026-01-01T12:00:00Z", entry, known=entry)
    results = tmp_path / "results"
    measure(results, study, run=OLD)
    for at, bound in ((OLD, "afterwards"), ("2026-01-02T00:10:00Z", "before")):
        count(results, study, at, fast=100)
        (row,) = claims_of(results, study)
        assert (row["verdict"], row["bound"]) == ("holds", bound)


def test_what_no_run_judges_has_no_such_mark(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(**UNITS), {**FOURFOLD, "id": "other"})
    publish(tmp_path / "results")
    measure(tmp_path / "results", study, {"slow": 8e-3})
    assert [row["bound"] for row in claims_of(tmp_path / "results", study)] == ["", ""]
    fast = samples_of(study, study.variant("fast"), rounds=1, run=NEW)
    skipped = [replace(s, value=None, verified=0, status="skipped", reason="no") for s in fast]
    add_samples(tmp_path / "results", study, "fast", skipped, NEW)
    assert [row["bound"] for row in claims_of(tmp_path / "results", study)] == ["", ""]


def test_the_headline_is_part_of_what_is_compared_and_the_words_are_not() -> None:
    study = describe(FOURFOLD)
    assert digests(study) == digests(describe({**FOURFOLD, "says": "In other words."}))
    assert digests(study) != digests(study | {"headline": {"rows": 2}})
    assert digests(study) != digests(describe(claim(**{**SPEEDUP, "at_least": 4})))
    assert digests(describe({"id": "it", "says": "So.", "untested": "why"})) == {}


def git(folder: Path, *arguments: str, at: str = NEW) -> str:
    someone = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", at))
    }
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **someone}
    )
    return done.stdout.strip()


def commit(folder: Path, at: str, *claims: Mapping[str, Any]) -> str:
    """The hash of a commit of a study.yaml with `claims`."""
    write_description(folder, describe(*claims))
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Claims", at=at)
    return git(folder, "rev-parse", "--short=12", "HEAD")


def test_the_history_tells_who_set_a_bound(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    git(tmp_path, "init", "-q")
    other = {**FOURFOLD, "id": "other", "test": {**SPEEDUP, "at_least": 2.5}}
    looser = {**other, "test": {**SPEEDUP, "at_least": 2}}
    first = commit(tmp_path, OLD, FOURFOLD, other)
    second = commit(tmp_path, BETWEEN, {**FOURFOLD, "says": "In other words."}, looser)
    assert [(row.claim, row.commit, row.set_at) for row in set_by(file)] == [
        ("it", first, OLD),
        ("other", second, BETWEEN),
    ]
    # A bound that was changed and changed back counts from then on; one that is in no commit, not.
    third = commit(tmp_path, NEW, FOURFOLD, other)
    assert {row.claim: row.commit for row in set_by(file)} == {"it": first, "other": third}
    write_description(tmp_path, describe(FOURFOLD, looser))
    assert [row.claim for row in set_by(file)] == ["it"]


def test_a_branch_that_lacked_a_claim_makes_it_no_younger(tmp_path: Path) -> None:
    other = {**FOURFOLD, "id": "other", "test": {**SPEEDUP, "at_least": 2.5}}
    reworded = {**FOURFOLD, "says": "In other words."}
    git(tmp_path, "init", "-q", "-b", "main")
    first = commit(tmp_path, OLD, FOURFOLD)
    git(tmp_path, "checkout", "-qb", "side")
    commit(tmp_path, BETWEEN, reworded)
    git(tmp_path, "checkout", "-q", "main")
    second = commit(tmp_path, BETWEEN, FOURFOLD, other)
    git(tmp_path, "merge", "-q", "-s", "ours", "--no-commit", "side", at=NEW)
    merged = commit(tmp_path, NEW, reworded, other)
    assert git(tmp_path, "rev-list", "--merges", "HEAD").startswith(merged)
    known = {row.claim: row.commit for row in set_by(tmp_path / "study.yaml")}
    assert known == {"it": first, "other": second}


def test_claims_that_are_in_no_commit_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git(tmp_path, "init", "-q")
    commit(tmp_path, OLD, FOURFOLD)
    monkeypatch.setattr("sys.argv", ["analysis.claims", str(tmp_path)])
    main()
    assert capsys.readouterr().out == ""
    other = {**FOURFOLD, "id": "other", "test": {**SPEEDUP, "at_least": 2.5}}
    write_description(tmp_path, describe(FOURFOLD, other))
    main()
    assert "commit these claims first: other\n" in capsys.readouterr().out
    assert [row.split(",")[0] for row in (tmp_path / FILE).read_text().split()] == ["claim", "it"]


def test_a_comparison_is_as_old_in_another_claim(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    git(tmp_path, "init", "-q")
    tests = [{**SPEEDUP, "at_least": bound} for bound in (2, 3)]
    both: dict[str, Any] = {"id": "both", "says": "So.", "all": tests}
    one, two = ({"id": f"at_least_{t['at_least']}", "says": "So.", "test": t} for t in tests)
    first = commit(tmp_path, OLD, both)
    second = commit(tmp_path, BETWEEN, one, two)
    assert {row.claim: row.commit for row in set_by(file)} == dict.fromkeys(
        [one["id"], two["id"]], first
    )
    # Once another comparison of the first claim is dropped, it counts from when it stood alone.
    commit(tmp_path, NEW, two)
    assert {row.claim: row.commit for row in set_by(file)} == {two["id"]: second}


def test_without_a_history_there_is_one_clear_error(tmp_path: Path) -> None:
    write_description(tmp_path, describe(FOURFOLD))
    with pytest.raises(HotpathError, match="expected a git checkout"):
        set_by(tmp_path / "study.yaml")


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_committed_bounds_are_those_of_the_history(study: Study) -> None:
    description = study.folder / "study.yaml"
    rows = read_bounds(study.folder / FILE)
    current = digests(read_yaml(description))
    stale = [row for row in rows if current.get(row.claim) != row.sha256]
    assert not stale, "run python -m analysis.claims once the bounds are committed"
    try:
        if git(study.folder, "rev-parse", "--is-shallow-repository") == "true":
            pytest.skip("the clone has no history")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no git checkout")
    assert set(rows) <= set(set_by(description))
