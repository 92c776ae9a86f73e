"""Ratios of payload rates between variants with different bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.site.facts.rows import RatioRow
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import make_inputs
from tests.synthetic import COPY, add_run, provenance_of, samples_of

LONGER, OTHER = COPY.variant("longer"), COPY.variant("in_flight")


def compared(root: Path, runs: Sequence[Sequence[float]]) -> RatioRow:
    """Comparison of `longer` with the other variant, given ratios of rates by run and round."""
    for day, rounds in enumerate(runs, start=1):
        run = f"2026-01-0{day}T00:00:00Z"
        for variant in (OTHER, LONGER):
            samples = [
                replace(sample, value=(sample.value or 0) / rounds[sample.round])
                if variant == LONGER
                else sample
                for sample in samples_of(
                    COPY,
                    variant,
                    run=run,
                    rounds=len(rounds),
                    noise=0,
                    seconds=lambda _, case, __: case.payload_bytes / 1e9,
                )
            ]
            provenance = provenance_of(COPY, variant, run=run)
            add_run(root / "results", "box", COPY.name, variant.name, samples, provenance)
    figures = StudyFacts(make_inputs(root, {COPY.name: COPY}), COPY).figures
    row = figures.comparison("box", LONGER, OTHER)
    assert row is not None and figures.is_of_rates(row)
    return row


def test_verdict_of_all_runs_is_decided(tmp_path: Path) -> None:
    row = compared(tmp_path, [[1.2] * 3, [1.5] * 3, [1.35] * 3])
    assert row.ratio == pytest.approx(1.35)
    assert row.ci_low < 1
    assert row.verdict == "faster"
    assert list(map(float, row.by_run.split("|"))) == pytest.approx([1.2, 1.5, 1.35])


def test_the_slower_by_time_may_be_the_faster_by_rate(tmp_path: Path) -> None:
    row = compared(tmp_path, [[1.1] * 8])
    assert row.ratio == pytest.approx(1.1)
    assert row.verdict == "faster"
