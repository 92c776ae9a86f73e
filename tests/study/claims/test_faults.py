"""Invalid claims, rejected when study.yaml is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.base.errors import FieldError
from tests.study.claims.studies import CASE, SPEEDUP, UNITS, claim, write_study

BETWEEN = {"kind": "between_cases", "of": "slow", "at_least": 1}
NEAR = {"kind": "near_best", "of": "fast", "given": ["share=9"], "slower": 1.05, "at_least": 0.9}


@pytest.mark.parametrize(
    ("test", "field", "expected"),
    [
        (SPEEDUP | {"kind": "speed"}, ".kind", "'speedup'"),
        (SPEEDUP | {"of": "gone"}, ": of, over", "one of ['slow'"),
        (SPEEDUP | {"case": "rows=2"}, "", "cases that fast has"),
        (BETWEEN | {"over_case": "gone"}, "", "cases that slow has"),
        (BETWEEN | {"over_case": CASE}, ": cases", "every entry once"),
        (NEAR, "", "cases that fast has"),
        (SPEEDUP | {"over": "fast"}, ": of, over", "every entry once"),
        (SPEEDUP | {"metric": "gone"}, ".metric", "['gpu_time'"),
        (SPEEDUP | {"limits": 3}, ".limits", "such as 'limit'"),
        (SPEEDUP | {"by": "bytes"}, ".by", "'time' or 'rate'"),
        (SPEEDUP | {"at_most": 3}, "", "exactly one of ['at_least'"),
        (SPEEDUP | {"at_least": 0}, ".at_least", "greater than 0"),
        ({"kind": "speedup", "of": "fast", "at_least": 1}, "", "expected ['of', 'over'] and of"),
        (UNITS | {"at_least": 1}, "", "expected no bound, got ['at_least']"),
    ],
)
def test_a_fault_in_a_comparison_is_one_error(
    tmp_path: Path, test: dict[str, Any], field: str, expected: str
) -> None:
    for place, entry in (("test", {"test": test}), ("all.1", {"all": [SPEEDUP, test]})):
        with pytest.raises(FieldError) as caught:
            write_study(tmp_path, {"id": "it", "says": "It is so."} | entry)
        assert caught.value.field == f"copy/study.yaml: claims.it.{place}{field}"
        assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "field", "expected"),
    [
        ({"all": [SPEEDUP]}, "", "two comparisons or more under all"),
        ({"all": [SPEEDUP | {"in_each": ["rows=2", "rows=9"]}]}, ".all.0", "rows=2"),
        ({}, "", "exactly one of test, all and untested"),
        ({"test": SPEEDUP, "untested": "why"}, "", "exactly one of test, all"),
        ({"test": SPEEDUP, "published": {"value": 1, "unit": "s"}}, ".published.unit", "'1'"),
        ({"test": SPEEDUP, "ours": "perhaps"}, ".ours", "boolean"),
    ],
)
def test_a_fault_in_a_claim_is_one_error(
    tmp_path: Path, entry: dict[str, Any], field: str, expected: str
) -> None:
    with pytest.raises(FieldError) as caught:
        write_study(tmp_path, {"id": "it", "says": "It is so."} | entry)
    assert caught.value.field == f"copy/study.yaml: claims.it{field}"
    assert expected in str(caught.value)


def test_duplicate_names_of_claims_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match="every entry once, got 'it'"):
        write_study(tmp_path, claim(**SPEEDUP), claim(**SPEEDUP))


def test_study_without_a_write_up_has_no_claims_of_others(tmp_path: Path) -> None:
    for write_up in (True, False):
        study = write_study(tmp_path, claim(**SPEEDUP), write_up=write_up)
        assert [one.ours for one in study.claims] == [not write_up]
