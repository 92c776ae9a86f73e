"""Claims without a test: skipped, stale, wrong, unclear or missing results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.study.claims.studies import (
    CASE,
    NEW,
    OLD,
    add_samples,
    claim,
    claims_of,
    measure,
    publish,
    verdict_on,
    write_study,
)
from tests.synthetic import Sample, files_of, samples_in, samples_of


def test_skipped_stale_and_missing_results_are_not_tested(tmp_path: Path) -> None:
    entry = claim(kind="speedup", of="fast", over="slow", at_least=1.0)
    study = write_study(tmp_path, entry)
    results = tmp_path / "results"

    def reason() -> str:
        (row,) = claims_of(results, study)
        assert row["verdict"] == "not tested"
        return str(row["reason"])

    assert claims_of(results, study) == []
    measure(results, study, {"slow": 8e-3})
    assert reason() == "missing: fast has not been measured in this case"
    samples = samples_of(study, study.variant("fast"), rounds=1, run=NEW)
    skipped = [
        replace(s, value=None, verified=0, status="skipped", reason="opt-in: set managed")
        for s in samples
    ]
    add_samples(results, study, "fast", skipped, NEW)
    assert reason() == "fast was skipped: opt-in: set managed"
    for path in (results / "box" / "copy").iterdir():
        path.unlink()
    measure(results, study, {"slow": 8e-3})
    measure(results, study, {"fast": 2e-3}, run=OLD)
    assert reason() == "missing: fast and slow have not been measured in one run"
    measure(results, study, {"fast": 2e-3}, run=NEW)
    (row,) = claims_of(results, study)
    assert row["verdict"] == "holds"
    study.variant("fast").path.write_text("print('changed')\n")
    assert reason() == "measured with other code: fast"


def test_a_run_without_the_metric_of_a_claim_does_not_count(tmp_path: Path) -> None:
    entry = claim(kind="figure", of="fast", metric="sms_used", at_most=20)
    study = write_study(tmp_path, entry)
    results = tmp_path / "results"
    measure(results, study, {"fast": 2e-3}, run=OLD)
    add_samples(results, study, "fast", samples_of(study, study.variant("fast"), run=NEW), NEW)
    (row,) = claims_of(results, study)
    assert (row["runs"], row["hosts"], row["by_run"]) == (1, 1, "16")


def test_a_single_round_has_no_interval_to_decide(tmp_path: Path) -> None:
    row = verdict_on(
        tmp_path, claim(kind="speedup", of="fast", over="slow", at_least=1.0), rounds=1
    )
    assert row["verdict"] == "not tested"
    assert row["reason"] == "a single round gives no interval"


WRONG = {"value": None, "verified": 0, "status": "failed", "reason": "byte 3"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"verified": 0}, "missing: the output of fast was not checked"),
        (WRONG, "fast failed its check: byte 3"),
    ],
)
def test_unchecked_or_wrong_output_tests_no_speed(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    study = write_study(tmp_path, claim(kind="speedup", of="fast", over="slow", at_least=1.0))
    results = tmp_path / "results"
    measure(results, study, {"slow": 8e-3})
    fast = [replace(s, **change) for s in samples_of(study, study.variant("fast"), run=NEW)]
    add_samples(results, study, "fast", fast, NEW)
    (row,) = claims_of(results, study)
    assert (row["verdict"], row["reason"]) == ("not tested", reason)


def test_a_claim_to_be_correct_flips_with_the_check(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="correct", of="fast"))
    results = tmp_path / "results"
    measure(results, study, {"slow": 8e-3})

    def found() -> tuple[str, str]:
        (row,) = claims_of(results, study)
        return str(row["verdict"]), str(row["reason"])

    assert found() == ("not tested", "missing: fast has not been measured in this case")
    measure(results, study, {"fast": 2e-3}, run=OLD)
    assert found() == ("holds", "passed its check in 8 rounds")
    measure(results, study, {"fast": 2e-3}, run="2026-01-01T12:00:00Z", rounds=3)
    assert found() == ("holds", "passed its check in 11 rounds")  # of both runs
    good = samples_of(study, study.variant("fast"), run=NEW)
    # One wrong round is enough.
    wrong = replace(good[0], value=None, verified=0, status="failed", reason="byte 3; 5 are wrong")
    rows = [wrong, *(s for s in good if s.round != wrong.round)]
    add_samples(results, study, "fast", rows, NEW)
    assert found() == ("does not hold", "failed its check: byte 3; 5 are wrong")
    study.variant("fast").path.write_text("print('changed')\n")
    assert found() == ("not tested", "measured with other code: fast")


def test_unchecked_or_skipped_output_is_not_called_correct(tmp_path: Path) -> None:
    study = write_study(tmp_path, claim(kind="correct", of="fast"))
    results = tmp_path / "results"
    measure(results, study, {"slow": 8e-3})
    samples = samples_of(study, study.variant("fast"), run=NEW)
    for change, reason in (
        ({"verified": 0}, "missing: the output of fast was not checked"),
        (
            {"value": None, "verified": 0, "status": "skipped", "reason": "no"},
            "fast was skipped: no",
        ),
    ):
        add_samples(results, study, "fast", [replace(s, **change) for s in samples], NEW)
        (row,) = claims_of(results, study)
        assert (row["verdict"], row["reason"]) == ("not tested", reason)
    some = [replace(s, verified=s.round % 2) for s in samples]
    add_samples(results, study, "fast", some, NEW)
    (row,) = claims_of(results, study)
    assert row["reason"] == "missing: the output of fast was not checked"


def test_every_machine_shows_the_reason_for_no_test(tmp_path: Path) -> None:
    study = write_study(tmp_path, {"id": "it", "says": "S", "untested": "needs two GPUs"})
    for machine in ("box", "other"):
        measure(tmp_path / "results", study, machine=machine)
    rows = claims_of(tmp_path / "results", study)
    assert [(row["machine"], row["verdict"], row["reason"]) for row in rows] == [
        ("box", "not tested", "needs two GPUs"),
        ("other", "not tested", "needs two GPUs"),
    ]


FASTER = {"kind": "speedup", "of": "fast", "over": "slow", "at_least": 3}


def edited(tmp_path: Path, change: Callable[[Sample], Sample], rounds: int = 8) -> dict[str, Any]:
    """The claim that `fast` is three times as fast, with its samples changed."""
    study = write_study(tmp_path, claim(**FASTER))
    results = tmp_path / "results"
    publish(results)
    measure(results, study, rounds=rounds)
    (path,) = files_of(results, "box", "copy")
    add_samples(results, study, "fast", [change(s) for s in samples_in(path, "fast")], NEW)
    (row,) = claims_of(results, study)
    return row


@pytest.mark.parametrize(
    ("reason", "rounds", "verdict"),
    [
        ("hw_thermal_slowdown|sw_power_cap", 33, "not tested"),
        ("sw_thermal_slowdown", 33, "not tested"),
        ("hw_slowdown", 32, "holds"),
        ("sw_power_cap", 64, "holds"),
    ],
)
def test_throttled_gpu_tests_no_claim(
    tmp_path: Path, reason: str, rounds: int, verdict: str
) -> None:
    def slow_down(sample: Sample) -> Sample:
        return replace(sample, throttle=reason if sample.round < rounds else "")

    row = edited(tmp_path, slow_down, rounds=64)
    assert row["verdict"] == verdict
    if verdict == "not tested":
        assert row["reason"] == "fast was slowed down in 52% of its samples"


def test_throttling_in_another_case_does_not_matter(
    tmp_path: Path,
) -> None:
    study = write_study(tmp_path, claim(**FASTER))
    results = tmp_path / "results"
    measure(results, study, {"fast": 2e-3})
    slow = [
        replace(sample, throttle="" if sample.case == CASE else "hw_slowdown", value=8e-3)
        for sample in samples_of(study, study.variant("slow"), rounds=24, run=NEW)
        if sample.case != CASE or sample.round < 8
    ]
    add_samples(results, study, "slow", slow, NEW)
    (row,) = claims_of(results, study)
    assert row["verdict"] == "holds"
