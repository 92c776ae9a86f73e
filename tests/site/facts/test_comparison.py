"""Comparison of machines: ratios with verdicts and intervals, and figures that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.site.facts.comparison import EQUAL, FASTER, SLOWER, UNCLEAR, machine_ratios
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from tests.roots import make_inputs
from tests.synthetic import COPY, at_rates, write_machine

STEP = COPY.variant("bytewise")
STEADY = (0.999, 1.0, 1.001)


def inputs_of(root: Path, rates: Sequence[float]) -> Inputs:
    """Results of two machines: a run on a host of its own for each rate of the first step in GB/s,
    STEADY on `box`, `rates` on `other-box`."""
    for machine, of_machine in (("box", STEADY), ("other-box", rates)):
        for day, rate in enumerate(of_machine, start=1):
            times: Any = {"seconds": at_rates({STEP.name: rate}), "noise": 1e-5, "grid": "smoke"}
            run = f"2026-01-0{day}T00:00:00Z"
            write_machine(root / "results", machine, COPY, variants=[STEP], run=run, **times)
    return make_inputs(root, {COPY.name: COPY})


def ratios(inputs: Inputs) -> list[Any]:
    return [*machine_ratios([StudyFacts(inputs, COPY)], [("box", "other-box")]).itertuples()]


@pytest.mark.parametrize(
    ("rate", "spread", "verdict"),
    [
        (0.5, 1, FASTER),
        (2, 1, SLOWER),
        (1 / 1.04, 1, EQUAL),
        (1.0, 60, UNCLEAR),
        (1 / 1.2, 150, UNCLEAR),
    ],
)
def test_machines_are_compared_by_their_runs(
    tmp_path: Path, rate: float, spread: float, verdict: str
) -> None:
    rates = [rate / (1 + spread * (one - 1)) for one in STEADY]
    (one,) = ratios(inputs_of(tmp_path, rates))
    assert one.verdict == verdict and one.is_judged
    assert one.ratio == pytest.approx(1 / rate, rel=0.01) and one.low < one.ratio < one.high


def test_too_few_runs_give_no_verdict_and_stale_ones_no_ratio(tmp_path: Path) -> None:
    inputs = inputs_of(tmp_path, [0.5] * 3)
    summary = inputs.tables["summary"]
    is_other = summary["machine"] == "other-box"
    (one,) = ratios(inputs.with_tables(summary=summary.assign(hosts=3 - 2 * is_other)))
    assert (one.is_judged, one.verdict) == (False, UNCLEAR)
    assert one.ratio == pytest.approx(2, rel=0.01) and pd.isna(one.low) and pd.isna(one.high)
    assert ratios(inputs.with_tables(summary=summary.assign(stale=1 * is_other))) == []
