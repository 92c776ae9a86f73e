"""Report at the end of a run."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

from analysis.measure.outcome import outcome
from analysis.measure.plan import Plan, Target
from analysis.results.store.runs import described
from tests.measure.studies import GRID, run, samples_at, write_study


def test_outcome_lists_measured_skipped_and_logs(tmp_path: Path, where: Target) -> None:
    variants = ({"name": "one"}, {"name": "wrong"}, {"name": "on_gpu", "needs": ["gpu"]})
    measured = write_study(tmp_path / "measured", *variants, {"name": "refuses"})
    skipped = write_study(tmp_path / "skipped", {"name": "one", "needs": ["gpu"]})
    failed = write_study(tmp_path / "failed", {"name": "one"})
    for study in (measured, skipped):
        run(Plan(study, study.variants, GRID, where), tmp_path)
    untouched = write_study(tmp_path / "untouched", {"name": "one"})
    logs = tmp_path / "logs"
    logs.mkdir()
    log = logs / "pending.log"
    log.touch()
    since = "2026-01-01T00:00:00Z"
    pending = ["measured", "skipped", "failed"]
    lines = list(
        outcome([measured, skipped, failed, untouched], pending, lambda study: where, since, logs)
    )
    assert lines == [
        f"measured: 3 variants measured in 4 cells, wrong output in 1, see {log}",
        f"failed: not measured, see {log}",
        "skipped: 2 variants of measured, skipped: no GPU",
        "skipped: 1 variants of measured: too large for this machine",
        f"results: {tmp_path / 'results' / 'test-box'}",
    ]
    assert (
        list(outcome([measured], ["measured"], lambda study: where, "2999-01-01T00:00:00Z", logs))
        == []
    )


def test_requested_variant_and_interrupted_run_count(tmp_path: Path, where: Target) -> None:
    study = write_study(tmp_path / "one_again", {"name": "one"}, {"name": "two"})
    run(Plan(study, study.variants, GRID, where), tmp_path)
    (path,) = described(where.folder / study.name)
    began = datetime.fromisoformat(samples_at(where, study, "one")[0].run)
    since = began + timedelta(hours=1)
    log = tmp_path / "logs" / study.name / "one.log"
    log.parent.mkdir(parents=True)
    log.touch()
    for changed in (log, path):
        os.utime(changed, times=(since.timestamp(), since.timestamp()))
    lines = list(
        outcome([study], [], lambda study: where, f"{since:%Y-%m-%dT%H:%M:%SZ}", tmp_path / "logs")
    )
    assert lines == [
        "one_again: 2 variants measured in 4 cells",
        f"results: {where.root / where.machine}",
    ]
