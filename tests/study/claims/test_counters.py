"""Comparisons of hardware counters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.study.claims.studies import (
    COUNTED,
    claim,
    claims_of,
    count,
    measure,
    write_study,
)


@pytest.mark.parametrize(
    ("test", "verdict", "measured"),
    [
        ({"kind": "counts_per", "per": COUNTED, "at_least": 4}, "holds", 4),
        ({"kind": "counts_per", "per": COUNTED, "at_most": 3.9}, "does not hold", 4),
        ({"kind": "counts_over", "over": "slow", "at_least": 1.9}, "holds", 2),
        ({"kind": "counts_over", "over": "slow", "at_most": 1.9}, "does not hold", 2),
    ],
)
def test_counters_decide_without_an_interval(
    tmp_path: Path, test: dict[str, Any], verdict: str, measured: float
) -> None:
    study = write_study(tmp_path, claim(**test, of="fast", counter="lts__t_sectors.sum"))
    results = tmp_path / "results"
    measure(results, study)
    (row,) = claims_of(results, study)
    no_profile = "missing: no fresh profile of fast has lts__t_sectors.sum in this case"
    assert (row["verdict"], row["reason"]) == ("not tested", no_profile)
    count(results, study, fast=200, slow=100)
    (row,) = claims_of(results, study)
    assert row["verdict"] == verdict
    assert row["measured"] == row["ci_low"] == row["ci_high"] == measured
    (tmp_path / "copy" / "fast.py").write_text("CHANGED = True\n")
    (row,) = claims_of(results, study)
    assert (row["verdict"], row["reason"]) == ("not tested", no_profile)
    count(results, study, fast=200, slow=100, status="not captured: no permission")
    (row,) = claims_of(results, study)
    assert (row["verdict"], row["reason"]) == ("not tested", no_profile)
