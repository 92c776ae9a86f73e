"""Comparison of machines: ratios with verdicts and intervals, and figures that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.site.facts.comparison import EQUAL, FASTER, SLOWER, UNCLEAR, machine_ratios
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import make_inputs
from tests.synthetic import COPY, add_run, files_of, make_stale, provenance_of, samples_of

STEP = COPY.variant("bytewise")
STEADY = (0.999, 1.0, 1.001)


def measure(root: Path, machine: str, factors: Sequence[float], hosts: int = 9) -> None:
    """A run a factor, on up to some hosts, with the times of the first step at 1 GB/s, each times
    the factor."""
    for day, factor in enumerate(factors, start=1):
        run = f"2026-01-0{day}T00:00:00Z"
        made = samples_of(
            COPY,
            STEP,
            run=run,
            seconds=lambda _, case, __: case.payload_bytes / 1e9,
            noise=1e-5,
            grid="smoke",
        )
        samples = [replace(sample, value=(sample.value or 0) * factor) for sample in made]
        provenance = provenance_of(COPY, STEP, run=run)
        provenance["machine"] |= {"host": f"{min(day, hosts)}" * 8}
        add_run(root / "results", machine, COPY.name, STEP.name, samples, provenance)


def ratios(root: Path) -> list[Any]:
    inputs = make_inputs(root, {COPY.name: COPY})
    return [*machine_ratios([StudyFacts(inputs, COPY)], [("box", "other-box")]).itertuples()]


@pytest.mark.parametrize(
    ("factor", "spread", "verdict"),
    [
        (2, 1, FASTER),
        (0.5, 1, SLOWER),
        (1.04, 1, EQUAL),
        (1.0, 60, UNCLEAR),
        (1.2, 150, UNCLEAR),
    ],
)
def test_machines_are_compared_by_their_runs(
    tmp_path: Path, factor: float, spread: float, verdict: str
) -> None:
    measure(tmp_path, "box", STEADY)
    measure(tmp_path, "other-box", [factor * (1 + spread * (one - 1)) for one in STEADY])
    (one,) = ratios(tmp_path)
    assert one.verdict == verdict and one.is_judged
    assert one.ratio == pytest.approx(factor, rel=0.01) and one.low < one.ratio < one.high


def test_too_few_runs_give_no_verdict_and_stale_ones_no_ratio(tmp_path: Path) -> None:
    measure(tmp_path, "box", STEADY)
    measure(tmp_path, "other-box", [2.0, 2.0, 2.0], hosts=1)
    (one,) = ratios(tmp_path)
    assert (one.is_judged, one.verdict) == (False, UNCLEAR)
    assert one.ratio == pytest.approx(2, rel=0.01) and pd.isna(one.low) and pd.isna(one.high)
    for file in files_of(tmp_path / "results", "other-box", COPY.name):
        make_stale(file)
    assert ratios(tmp_path) == []
