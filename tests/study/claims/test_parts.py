"""Claims of several comparisons, and of hardware counters."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.study.claims.studies import (
    claim,
    claims_of,
    measure,
    parts_of,
    publish,
    write_study,
)


def test_each_part_has_a_row_and_the_deciding_one_comes_first(tmp_path: Path) -> None:
    parts = [
        {"kind": "speedup", "of": "fast", "over": "slow", "at_least": 3.9},
        {"kind": "figure", "of": "fast", "metric": "gpu_time", "within": 0.1},
        {"kind": "correct", "of": "fast"},
        {"kind": "speedup", "of": "wide", "over": "fast", "by": "rate", "at_most": 1.5},
    ]
    entry = {"id": "it", "says": "All.", "all": parts}
    study = write_study(tmp_path, entry, claim(kind="correct", of="fast") | {"id": "alone"})
    results = tmp_path / "results"
    publish(results)
    measure(results, study)
    rows = parts_of(results, study)
    assert [(row.part, row.comparison, row.verdict) for row in rows] == [
        (4, "wide over fast by rate", "does not hold"),
        (2, "fast gpu_time", "holds"),
        (3, "fast", "holds"),
        (1, "fast over slow", "holds"),
    ]
    by_rate, time, check, speedup = rows
    assert by_rate.reason == "not at most 1.5"
    assert (by_rate.measured, by_rate.ci_low, by_rate.ci_high) == pytest.approx((2,) * 3, rel=1e-3)
    assert (time.published, speedup.published) == pytest.approx((2e-3, 4))
    assert check.reason == "passed its check in 8 rounds"
    assert math.isnan(check.measured) and math.isnan(check.ci_low)
    assert check.sentence(with_case=True) == f"fast in {check.case}: {check.reason}"
    # The reason of the claim joins theirs, in that order.
    (reason,) = [row["reason"] for row in claims_of(results, study) if row["claim"] == "it"]
    assert reason == "; ".join(row.sentence(with_case=False) for row in rows)
