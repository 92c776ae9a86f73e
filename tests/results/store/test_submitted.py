"""Submissions: what is accepted, and that hostile ones are refused with a line each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from snakemake.utils import validate

from analysis import ROOT
from analysis.base.errors import HotpathError
from analysis.results.store.submission import SUBMISSION_LIMIT_BYTES
from analysis.results.store.submitted import (
    checked,
    link_bound,
    load_submissions,
    read_submission,
)
from tests.repository import STUDIES
from tests.results.store.submissions import (
    ALL,
    STUDY,
    VARIANT,
    Hostile,
    digested,
    whole,
    write,
)
from tests.results.store.test_keys import at, changed, places, wrong

GOOD = "good-box"
COMMITTED = sorted((ROOT / "results" / "submitted").iterdir())
SCHEMA = str(ROOT / "config" / "submission.schema.json")


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.name)
def test_a_committed_submission_is_accepted_and_follows_the_schema(path: Path) -> None:
    assert path.stat().st_size <= SUBMISSION_LIMIT_BYTES
    assert read_submission(path, STUDIES).name == path.stem
    validate(json.loads(path.read_text()), SCHEMA, set_default=False)


def test_none_of_the_committed_is_refused() -> None:
    assert load_submissions(ROOT / "results", STUDIES).refused == {}


def test_the_whole_submission_is_accepted_and_follows_the_schema() -> None:
    sent = checked(whole(), STUDIES, "here")
    assert sent.current == {(STUDY, VARIANT)}
    validate(whole(), SCHEMA, set_default=False)


def test_there_are_60_hostile_ones() -> None:
    assert len(ALL) >= 60


@pytest.mark.parametrize("name", ALL)
def test_a_hostile_submission_is_refused_alone_in_one_line(tmp_path: Path, name: str) -> None:
    hostile: Hostile = ALL[name]
    write(tmp_path / "submitted", whole(GOOD))
    hostile.write(tmp_path / "submitted")
    found = load_submissions(tmp_path, STUDIES)
    assert set(found.accepted) == {GOOD}
    [(file, reason)] = found.refused.items()
    assert file.startswith("submitted/")
    assert reason.startswith("submitted/") and hostile.says in reason
    assert reason.isprintable() and len(reason) < 600


@pytest.mark.parametrize("place", list(places(whole())), ids=str)
def test_any_wrong_value_is_refused_or_harmless(place: tuple[Any, ...]) -> None:
    content = whole()
    for value in wrong(at(content, place)):
        spoiled = changed(content, place, value)
        try:
            spoiled = digested(spoiled)
        except (AttributeError, KeyError, TypeError):
            continue  # not even the digest of the code can be computed
        try:
            checked(spoiled, STUDIES, "here")
        except HotpathError as error:
            assert str(error).startswith("here: ")


def test_the_folder_itself_may_be_anything(tmp_path: Path) -> None:
    assert load_submissions(tmp_path, STUDIES).refused == {}
    (tmp_path / "submitted").symlink_to("/etc")
    refused = load_submissions(tmp_path, STUDIES).refused
    assert refused == {"submitted": "submitted: expected a folder, got a link"}


def test_the_same_content_is_accepted_once(tmp_path: Path) -> None:
    first = write(tmp_path / "submitted", whole("a-box"))
    twin = tmp_path / "submitted" / "b-box.json"
    twin.write_bytes(first.read_bytes())
    found = load_submissions(tmp_path, STUDIES)
    assert list(found.accepted) == ["a-box"]
    assert list(found.refused) == ["submitted/b-box.json"]


def test_figures_of_other_code_are_accepted_and_not_current() -> None:
    content = whole()
    content["studies"][STUDY][VARIANT]["source_sha256"] = "0" * 64
    content["studies"]["a_study_that_is_gone"] = {VARIANT: content["studies"][STUDY][VARIANT]}
    sent = checked(digested(content), STUDIES, "here")
    assert sent.current == frozenset()
    assert sent.of_today(STUDY, VARIANT, content["studies"][STUDY][VARIANT]["case"]) == {}


@pytest.mark.parametrize(
    ("machine", "rate"),
    [
        ({"gpu": "NVIDIA H200", "arch": "sm_90", "pcie_generation": 5, "pcie_width": 16}, 64e9),
        ({"gpu": "NVIDIA H100", "arch": "sm_90", "pcie_generation": 4, "pcie_width": 16}, 32e9),
        ({"gpu": "NVIDIA L4", "arch": "sm_89", "pcie_generation": 4, "pcie_width": 8}, 16e9),
        # An idle link may report the first generation.
        ({"gpu": "NVIDIA RTX", "arch": "sm_89", "pcie_generation": 1, "pcie_width": 16}, 32e9),
        ({"gpu": "NVIDIA GH200 480GB", "arch": "sm_90", "pcie_generation": 5}, 450e9),
        ({"gpu": None}, 450e9),
    ],
)
def test_the_bound_is_that_of_the_link(machine: dict[str, Any], rate: float) -> None:
    assert link_bound(machine) == rate
