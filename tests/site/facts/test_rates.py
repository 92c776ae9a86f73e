"""Ratios of payload rates between variants with different bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.site.facts.study_facts import StudyFacts
from tests.roots import make_inputs
from tests.synthetic import COPY, add_run, provenance_of, samples_of

LONGER, OTHER = COPY.variant("longer"), COPY.variant("in_flight")


@pytest.mark.parametrize(
    ("runs", "middle"), [([[1.2] * 3, [1.5] * 3, [1.35] * 3], 1.35), ([[1.1] * 8], 1.1)]
)
def test_the_slower_by_time_may_be_the_faster_by_rate(
    tmp_path: Path, runs: Sequence[Sequence[float]], middle: float
) -> None:
    """`runs` are ratios of rates by run and round. All runs decide, whatever the interval."""
    for day, rounds in enumerate(runs, start=1):
        run = f"2026-01-0{day}T00:00:00Z"
        for variant in (OTHER, LONGER):
            samples = samples_of(
                COPY,
                variant,
                run=run,
                rounds=len(rounds),
                noise=0,
                seconds=lambda _, case, __: case.payload_bytes / 1e9,
            )
            if variant == LONGER:
                samples = [replace(s, value=(s.value or 0) / rounds[s.round]) for s in samples]
            provenance = provenance_of(COPY, variant, run=run)
            add_run(tmp_path / "results", "box", COPY.name, variant.name, samples, provenance)
    figures = StudyFacts(make_inputs(tmp_path, {COPY.name: COPY}), COPY).figures
    row = figures.comparison("box", LONGER, OTHER)
    assert row is not None
    assert row.verdict == "faster" and row.ratio == pytest.approx(middle)
    assert [*map(float, row.by_run.split("|"))] == pytest.approx([rates[0] for rates in runs])
