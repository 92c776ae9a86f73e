"""Kinds of comparison: each class checks, judges and documents one."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.study.claims.kinds import KINDS, Comparison
from tests.repository import STUDIES
from tests.study.claims.studies import claim, claims_of, measure, write_study


def test_every_kind_is_in_use() -> None:
    tests: list[Comparison] = [
        test for study in STUDIES.values() for one in study.claims for test in one.tests
    ]
    assert {type(test) for test in tests} == set(KINDS.values())


def test_an_added_time_is_the_difference_of_two_times(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="added_time", of="slow", over="fast", at_least=1e-3))
    measure(tmp_path / "results", study, {"slow": 8e-3, "fast": 2e-3})
    (row,) = claims_of(tmp_path / "results", study)
    assert row["verdict"] == "holds" and row["unit"] == "s"
    assert row["measured"] == pytest.approx(6e-3, rel=1e-2)
    (test,) = study.claims[0].tests
    assert test.write(6e-3, "s") == "6.000 ms"
