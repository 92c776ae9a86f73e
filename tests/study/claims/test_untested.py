"""Claims without a test: skipped, stale, wrong, unclear or missing results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.study import Study
from tests.study.claims.studies import (
    CASE,
    NEW,
    OLD,
    add_samples,
    claim,
    claims_of,
    measure,
    write_study,
)
from tests.synthetic import samples_of

FASTER = claim(kind="speedup", of="fast", over="slow", at_least=3)
CORRECT = claim(kind="correct", of="fast") | {"id": "correct"}
WRONG: dict[str, Any] = {"value": None, "verified": 0, "status": "failed", "reason": "byte 3"}
SKIPPED: dict[str, Any] = {"value": None, "verified": 0, "status": "skipped", "reason": "no"}


def add_fast(results: Path, study: Study, change: dict[str, Any], rounds: int = 8) -> None:
    samples = samples_of(study, study.variant("fast"), rounds=rounds, run=NEW)
    add_samples(results, study, "fast", [replace(s, **change) for s in samples], NEW)


def said(results: Path, study: Study) -> list[tuple[str, str]]:
    """Verdict and reason of each claim, but the reason of an interval."""
    rows = claims_of(results, study)
    return [(row["verdict"], row["reason"].split(" 3")[0]) for row in rows]


def test_skipped_stale_and_missing_results_are_not_tested(tmp_path: Path) -> None:
    study, results = write_study(tmp_path, FASTER, CORRECT), tmp_path / "results"
    assert claims_of(results, study) == []
    measure(results, study, {"slow": 8e-3})
    missing = "missing: fast has not been measured in this case"
    assert said(results, study) == [("not tested", missing)] * 2
    add_fast(results, study, SKIPPED, rounds=1)
    assert said(results, study) == [("not tested", "fast was skipped: no")] * 2
    for path in (results / "box" / "copy").iterdir():
        path.unlink()
    measure(results, study, {"slow": 8e-3})
    measure(results, study, {"fast": 2e-3}, run=OLD)
    apart = "missing: fast and slow have not been measured in one run"
    passed = "passed its check in {} rounds"
    assert said(results, study) == [("not tested", apart), ("holds", passed.format(8))]
    measure(results, study, {"fast": 2e-3}, run=NEW)
    assert said(results, study) == [("holds", "at least"), ("holds", passed.format(16))]
    study.variant("fast").path.write_text("print('changed')\n")
    assert said(results, study) == [("not tested", "measured with other code: fast")] * 2


def test_unchecked_or_wrong_output_tests_no_speed(tmp_path: Path) -> None:
    unchecked = "missing: the output of fast was not checked"
    for name, change, speed, correct in (
        ("unchecked", {"verified": 0}, unchecked, ("not tested", unchecked)),
        (
            "wrong",
            WRONG,
            "fast failed its check: byte",
            ("does not hold", "failed its check: byte"),
        ),
    ):
        study, results = write_study(tmp_path, FASTER, CORRECT), tmp_path / name
        measure(results, study, {"slow": 8e-3})
        add_fast(results, study, change)
        assert said(results, study) == [("not tested", speed), correct]


def test_one_wrong_or_unchecked_round_is_enough(tmp_path: Path) -> None:
    study, results = write_study(tmp_path, CORRECT), tmp_path / "results"
    measure(results, study, {"slow": 8e-3})
    good = samples_of(study, study.variant("fast"), run=NEW)
    wrong = replace(good[0], **WRONG)
    for rows, verdict in (
        ([wrong, *(s for s in good if s.round != wrong.round)], "does not hold"),
        ([replace(s, verified=s.round % 2) for s in good], "not tested"),
    ):
        add_samples(results, study, "fast", rows, NEW)
        assert [row["verdict"] for row in claims_of(results, study)] == [verdict]


def test_every_machine_shows_the_reason_for_no_test(tmp_path: Path) -> None:
    study = write_study(tmp_path, {"id": "it", "says": "S", "untested": "needs two GPUs"})
    for machine in ("box", "other"):
        measure(tmp_path / "results", study, machine=machine)
    rows = claims_of(tmp_path / "results", study)
    reasons = [(row["machine"], row["verdict"], row["reason"]) for row in rows]
    assert reasons == [(name, "not tested", "needs two GPUs") for name in ("box", "other")]


@pytest.mark.parametrize(
    ("reason", "rounds", "case", "verdict"),
    [
        ("hw_thermal_slowdown|sw_power_cap", 33, CASE, "not tested"),
        ("hw_slowdown", 32, CASE, "holds"),
        ("hw_slowdown", 64, "rows=2", "holds"),
        ("sw_power_cap", 64, CASE, "holds"),
    ],
)
def test_throttled_gpu_tests_no_claim(
    tmp_path: Path, reason: str, rounds: int, case: str, verdict: str
) -> None:
    study, results = write_study(tmp_path, FASTER), tmp_path / "results"
    measure(results, study, {"fast": 2e-3}, rounds=64)
    slow = [
        replace(one, value=8e-3, throttle=reason * (one.round < rounds and one.case == case))
        for one in samples_of(study, study.variant("slow"), rounds=64, run=NEW)
    ]
    add_samples(results, study, "slow", slow, NEW)
    (row,) = claims_of(results, study)
    assert row["verdict"] == verdict
    if verdict == "not tested":
        assert row["reason"] == "slow was slowed down in 52% of its samples"
