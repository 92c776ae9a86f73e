"""Invalid claims, rejected when study.yaml is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.base.errors import FieldError
from tests.study.claims.studies import CASE, SPEEDUP, claim, write_study


@pytest.mark.parametrize(
    ("entry", "field", "expected"),
    [
        ({"test": SPEEDUP | {"kind": "speed"}}, "claims.it.test", "one of ['speedup'"),
        ({"test": SPEEDUP | {"of": "gone"}}, "claims.it.test.of", "one of ['slow'"),
        ({"test": SPEEDUP | {"over": "gone"}}, "claims.it.test.over", "one of ['slow'"),
        ({"test": SPEEDUP | {"case": "rows=2"}}, "claims.it.test.case", "a case that fast has"),
        (
            {"test": {"kind": "between_cases", "of": "slow", "over_case": "gone", "at_least": 1}},
            "claims.it.test.over_case",
            "a case that slow has",
        ),
        (
            {"test": SPEEDUP | {"kind": "mean_speedup", "also": ["rows=2"]}},
            "claims.it.test.also.0",
            "a case that fast has",
        ),
        (
            {
                "test": {"kind": "near_best", "of": "fast", "given": ["share=9"]}
                | {"slower": 1.05, "at_least": 0.9}
            },
            "claims.it.test",
            "cases that fast has",
        ),
        ({"test": SPEEDUP | {"over": "fast"}}, "claims.it.test: of, over", "every entry once"),
        (
            {"test": {"kind": "between_cases", "of": "slow", "over_case": CASE, "at_least": 1}},
            "claims.it.test: case, over_case",
            "every entry once",
        ),
        ({"test": SPEEDUP | {"metric": "gone"}}, "claims.it.test.metric", "['gpu_time'"),
        ({"test": SPEEDUP | {"limit": 3}}, "claims.it.test.limit", "no such key, got 3"),
        ({"test": SPEEDUP | {"by": "bytes"}}, "claims.it.test.by", "['time', 'rate']"),
        ({"test": SPEEDUP | {"at_most": 3}}, "claims.it.test", "exactly one of ['at_least'"),
        ({"test": SPEEDUP | {"at_least": 0}}, "claims.it.test.at_least", "above 0"),
        (
            {"test": {"kind": "speedup", "of": "fast", "at_least": 1}},
            "claims.it.test.over",
            "a value",
        ),
        (
            {"test": {"kind": "figure", "of": "fast", "at_most": 1}},
            "claims.it.test.metric",
            "a value",
        ),
        (
            {"test": {"kind": "units", "printed": "GB/s", "meant": "GiB/s", "at_least": 1}},
            "claims.it.test.at_least",
            "no such key",
        ),
        ({"all": [SPEEDUP, SPEEDUP | {"of": "gone"}]}, "claims.it.all.1.of", "one of ['slow'"),
        ({"all": [SPEEDUP]}, "claims.it.all", ""),
        ({}, "claims.it", "exactly one of test, all and untested"),
        ({"test": SPEEDUP, "untested": "why"}, "claims.it", "exactly one of test, all"),
        ({"untested": ""}, "claims.it.untested", "not empty"),
        (
            {"test": SPEEDUP, "published": {"value": 1, "unit": "s"}},
            "claims.it.published.unit",
            "'1'",
        ),
        ({"test": SPEEDUP, "published": {"value": 1}}, "claims.it.published.unit", "a value"),
        ({"test": SPEEDUP, "ours": "perhaps"}, "claims.it.ours", "boolean"),
        ({"test": SPEEDUP, "verdict": "holds"}, "claims.it.verdict", "no such key"),
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
