"""Kinds of comparison: each class checks, judges and documents one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from analysis.base.errors import FieldError
from analysis.base.keys import Count, Name, Text, key
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages import ledger
from analysis.site.pages.fragments import Place
from analysis.study.claims.comparison import KINDS, Bounded, Comparison
from analysis.study.claims.evidence import Evidence
from analysis.study.claims.verdicts import Figure
from tests.repository import STUDIES
from tests.study.claims.studies import CASE, claim, claims_of, measure, parts_of, read, write_study


@pytest.fixture
def saved() -> Iterator[None]:
    """A kind of this test: the time saved by one variant, in `parts` of 1."""

    @dataclass(frozen=True, kw_only=True)
    class Saved(Bounded, kind="saved"):
        of: Name = key("The faster variant.", names="variant")
        than: Name = key("The slower variant.", names="variant")
        parts: Count = key("The figure is given in parts of this number.", 1)
        case: Text = key("The case.", "")

        def figure(self, evidence: Evidence) -> Figure:
            fast, slow = evidence.times([self.of, self.than], self.case, "")
            return evidence.over_rounds((1 - fast / slow) * self.parts)

        def write(self, value: float, unit: str) -> str:
            return f"{value:.2f} of {self.parts} saved"

    yield
    del KINDS["saved"]


@pytest.mark.usefixtures("saved")
def test_a_new_kind_is_one_class(tmp_path: Path) -> None:
    test = {"kind": "saved", "of": "fast", "than": "slow", "parts": 100, "at_least": 70}
    study = write_study(tmp_path, claim(**test))
    measure(tmp_path / "results", study)
    (row,) = claims_of(tmp_path / "results", study)
    assert (row["verdict"], row["reason"]) == ("holds", "at least 70")
    assert row["measured"] == pytest.approx(75, rel=1e-3)
    assert (row["unit"], row["case"]) == ("1", CASE)
    ledger.claims(StudyFacts(read(tmp_path, study), study), Place(tmp_path / "site", "../"))
    page = tmp_path / "site" / "evidence" / "copy" / "claims" / "it.html"
    cell = '<td class="hp-number"[^>]*>75.00 of 100 saved</td>'
    assert re.search(cell, page.read_text())
    both = {"id": "both", "says": "Both.", "all": [test, test | {"parts": 1, "at_least": 0.8}]}
    part, _ = parts_of(tmp_path / "results", write_study(tmp_path, both))
    assert (part.comparison, part.verdict) == ("fast over slow", "does not hold")


@pytest.mark.usefixtures("saved")
@pytest.mark.parametrize(
    ("change", "field", "expected"),
    [
        ({"than": "gone"}, "claims.it.test.than", "one of ['slow'"),
        ({"case": "rows=2"}, "claims.it.test.case", "a case that fast has"),
        ({"parts": 0}, "claims.it.test.parts", "a number of at least 1"),
        ({"over": "slow"}, "claims.it.test", "'case', 'of', 'parts', 'than', 'within']"),
        ({"at_least": 0}, "claims.it.test.at_least", "above 0"),
    ],
)
def test_its_keys_are_checked_like_those_of_the_others(
    tmp_path: Path, change: dict[str, object], field: str, expected: str
) -> None:
    test = {"kind": "saved", "of": "fast", "than": "slow", "at_least": 0.5}
    with pytest.raises(FieldError) as caught:
        write_study(tmp_path, claim(**(test | change)))
    assert caught.value.field == f"copy/study.yaml: {field}"
    assert expected in str(caught.value)


def test_only_named_classes_are_kinds() -> None:
    assert "" not in KINDS and Bounded not in KINDS.values()
    assert all(name == kind.kind for name, kind in KINDS.items())


def test_every_kind_is_in_use() -> None:
    tests: list[Comparison] = [
        test for study in STUDIES.values() for one in study.claims for test in one.tests
    ]
    assert {test.kind for test in tests} == set(KINDS)


def test_an_added_time_is_the_difference_of_two_times(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="added_time", of="slow", over="fast", at_least=1e-3))
    measure(tmp_path / "results", study, {"slow": 8e-3, "fast": 2e-3})
    (row,) = claims_of(tmp_path / "results", study)
    assert row["verdict"] == "holds" and row["unit"] == "s"
    assert row["measured"] == pytest.approx(6e-3, rel=1e-2)
    (test,) = study.claims[0].tests
    assert test.write(6e-3, "s") == "6.000 ms"
