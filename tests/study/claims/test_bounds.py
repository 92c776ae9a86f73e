"""Runs that name the bound of a claim, which alone judge it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from analysis.study import Study
from analysis.study.claims.claim import digests
from tests.study.claims.studies import (
    COUNTED,
    NEW,
    OLD,
    SECONDS,
    SPEEDUP,
    UNITS,
    claim,
    claims_of,
    count,
    describe,
    measure,
    write_study,
)

OLDEST, OLDER = "2025-12-30T00:00:00Z", "2025-12-31T00:00:00Z"
FOURFOLD = claim(**{**SPEEDUP, "at_least": 3})
HALF = {**SECONDS, "fast": 4e-3}
"""Seconds with which `fast` is only twice as fast as `slow`."""


def measured(tmp_path: Path, *claims: Mapping[str, Any], then: list[Any]) -> Study:
    """A study with `claims` and two runs of it; in the older one `fast` is half as fast. Each names
    the claims of `then`."""
    study = write_study(tmp_path / "now", *claims)
    for run, seconds, known in zip((OLD, NEW), (HALF, SECONDS), then, strict=True):
        named = write_study(tmp_path / run, *known) if known else None
        measure(tmp_path / "now" / "results", study, seconds, run=run, then=named)
    return study


def judged(tmp_path: Path, study: Study) -> dict[str, dict[str, Any]]:
    rows = claims_of(tmp_path / "now" / "results", study)
    return {row["claim"]: row for row in rows}


def test_only_runs_that_name_the_bound_judge_it(tmp_path: Path) -> None:
    study = measured(tmp_path, FOURFOLD, then=[[], [FOURFOLD]])
    row = judged(tmp_path, study)["it"]
    assert (row["verdict"], row["bound"]) == ("holds", "before")
    assert (row["runs"], row["judging"]) == (2, 1)
    assert row["judged"] == pytest.approx(4, rel=1e-3)
    # The others stay in the figure.
    for run in (OLDEST, OLDER):
        measure(tmp_path / "now" / "results", study, HALF, run=run)
    row = judged(tmp_path, study)["it"]
    assert (row["runs"], row["judging"], row["verdict"]) == (4, 1, "holds")
    assert row["measured"] == pytest.approx(2, rel=1e-3)
    assert row["ci_low"] < 2 and row["ci_high"] > 4, "an interval for another run"
    assert 3.9 < row["judged_low"] < row["judged"] < row["judged_high"] < 4.1


def test_a_comparison_stays_named_in_another_claim_unless_one_was_dropped(tmp_path: Path) -> None:
    tests = [{**SPEEDUP, "at_least": bound} for bound in (2, 3)]
    both: dict[str, Any] = {"id": "both", "says": "So.", "all": tests}
    one, two = ({"id": f"at_least_{t['at_least']}", "says": "So.", "test": t} for t in tests)
    for name, now, then, bound in (
        ("changed", [one], [two], "afterwards"),
        ("divided", [one, two], [both], "before"),
        ("joined", [both], [one, two], "before"),
        ("halved", [two], [both], "afterwards"),
        ("extended", [both], [one], "afterwards"),
    ):
        study = measured(tmp_path / name, *now, then=[then, then])
        assert {row["bound"] for row in judged(tmp_path / name, study).values()} == {bound}, name


def test_a_profile_judges_the_bounds_that_it_names(tmp_path: Path) -> None:
    test = {"kind": "counts_per", "of": "fast", "counter": "lts__t_sectors.sum", "per": COUNTED}
    study = write_study(tmp_path, claim(**test, at_least=3), FOURFOLD | {"id": "other"})
    assert list(study.bounds_of("fast", counted=True)) == ["it"]
    results = tmp_path / "results"
    measure(results, study, run=OLD, then=study)
    for then, bound in ((None, "afterwards"), (study, "before")):
        count(results, study, NEW, then=then, fast=100)
        row = next(row for row in claims_of(results, study) if row["claim"] == "it")
        assert (row["verdict"], row["bound"]) == ("holds", bound)


def test_digest_includes_the_headline_but_not_the_words() -> None:
    study = describe(FOURFOLD)
    assert digests(study) == digests(describe({**FOURFOLD, "says": "In other words."}))
    assert digests(study) != digests(study | {"headline": {"rows": 2}})
    assert digests(study) != digests(describe(claim(**{**SPEEDUP, "at_least": 4})))
    assert digests(describe({"id": "it", "says": "So.", "untested": "why"})) == {}
    # A comparison in each of several cases is that of one entry a case.
    cases = ["rows=1", "rows=2"]
    apart = {"id": "it", "says": "So.", "all": [SPEEDUP | {"case": case} for case in cases]}
    joined = apart | {"all": [SPEEDUP | {"in_each": cases}]}
    assert digests(describe(joined)) == digests(describe(apart))


def test_a_variant_has_the_claims_that_compare_it(tmp_path: Path) -> None:
    other = {**FOURFOLD, "id": "other", "test": {**SPEEDUP, "of": "wide", "by": "rate"}}
    study = write_study(tmp_path, FOURFOLD, other, {**claim(**UNITS), "id": "units"})
    expected = {"slow": ["it", "other"], "fast": ["it"], "wide": ["other"], "host": []}
    assert {name: [*study.bounds_of(name)] for name in expected} == expected
    assert study.bounds_of("fast") == {"it": [*digests(describe(FOURFOLD))["it"]]}
