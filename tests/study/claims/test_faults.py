"""Invalid claims, rejected when study.yaml is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.base.errors import FieldError
from tests.study.claims.studies import CASE, SPEEDUP, claim, write_study

BETWEEN = {"kind": "between_cases", "of": "slow", "at_least": 1}
NEAR = {"kind": "near_best", "of": "fast", "given": ["share=9"], "slower": 1.05, "at_least": 0.9}
UNITS = {"kind": "units", "printed": "GB/s", "meant": "GiB/s"}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in SPEEDUP.items() if name != key}


@pytest.mark.parametrize(
    ("test", "field", "expected"),
    [
        (SPEEDUP | {"kind": "speed"}, "", "one of ['speedup'"),
        (SPEEDUP | {"of": "gone"}, ".of", "one of ['slow'"),
        (SPEEDUP | {"over": "gone"}, ".over", "one of ['slow'"),
        (SPEEDUP | {"case": "rows=2"}, ".case", "a case that fast has"),
        (BETWEEN | {"over_case": "gone"}, ".over_case", "a case that slow has"),
        (BETWEEN | {"over_case": CASE}, ": case, over_case", "every entry once"),
        (SPEEDUP | {"kind": "mean_speedup", "also": ["rows=2"]}, ".also.0", "a case that fast"),
        (NEAR, "", "cases that fast has"),
        (SPEEDUP | {"over": "fast"}, ": of, over", "every entry once"),
        (SPEEDUP | {"metric": "gone"}, ".metric", "['gpu_time'"),
        (SPEEDUP | {"limit": 3}, ".limit", "one of ['case'"),
        (SPEEDUP | {"by": "bytes"}, ".by", "['time', 'rate']"),
        (SPEEDUP | {"at_most": 3}, "", "exactly one of ['at_least'"),
        (SPEEDUP | {"at_least": 0}, ".at_least", "above 0"),
        (without("over"), ".over", "a value"),
        (without("at_least"), "", "exactly one of ['at_least'"),
        (UNITS | {"at_least": 1}, ".at_least", "one of ["),
        (UNITS | {"meant": "GB"}, ".meant", "'GiB/s'"),
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
        ({"all": [SPEEDUP]}, "claims.it", "two comparisons or more under all"),
        ({"all": [SPEEDUP | {"in_each": ["rows=2", "rows=9"]}]}, "claims.it.all.0.case", "rows=2"),
        ({}, "claims.it", "exactly one of test, all and untested"),
        ({"test": SPEEDUP, "untested": "why"}, "claims.it", "exactly one of test, all"),
        ({"untested": ""}, "claims.it.untested", "not empty"),
        ({"test": SPEEDUP, "published": {"value": 1, "unit": "s"}}, "claims.it.published.unit", ""),
        ({"test": SPEEDUP, "published": {"value": 1}}, "claims.it.published.unit", "a value"),
        ({"test": SPEEDUP, "ours": "perhaps"}, "claims.it.ours", "boolean"),
        ({"test": SPEEDUP, "verdict": "holds"}, "claims.it.verdict", "one of ["),
    ],
)
def test_a_fault_in_a_claim_is_one_error(
    tmp_path: Path, entry: dict[str, Any], field: str, expected: str
) -> None:
    with pytest.raises(FieldError) as caught:
        write_study(tmp_path, {"id": "it", "says": "It is so."} | entry)
    assert caught.value.field == f"copy/study.yaml: {field}"
    assert expected in str(caught.value)


def test_duplicate_names_of_claims_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(FieldError, match="every entry once, got 'it'"):
        write_study(tmp_path, claim(**SPEEDUP), claim(**SPEEDUP))


def test_study_without_a_write_up_has_no_claims_of_others(tmp_path: Path) -> None:
    for write_up in (True, False):
        study = write_study(tmp_path, claim(**SPEEDUP), write_up=write_up)
        assert [one.ours for one in study.claims] == [not write_up]
