"""One program listed twice: false differences within a run and between runs."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from analysis.results.collect import collect
from analysis.results.tables.ratios import ratios_by_round
from analysis.results.tables.repeats import REPEAT_COLUMNS, repeat_table
from analysis.study import Case, Variant
from tests.results.tables.rows import row, table
from tests.synthetic import CALLS, STUDIES, name_of, plausible, write_machine

RUNS = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 5)]
SLOW = RUNS[2]


def measured(folder: Path, runs: list[str], slower: float = 1.0) -> pd.DataFrame:
    """Repeats on a machine that is slower in the run SLOW."""
    cpu = [variant for variant in CALLS.variants if not variant.on_gpu]
    for run in runs:

        def seconds(variant: Variant, case: Case, metric: str, run: str = run) -> float:
            program = CALLS.variant("python") if variant.name == "again" else variant
            return plausible(program, case, metric) * (slower if run == SLOW else 1.0)

        write_machine(
            folder, "box", CALLS, variants=cpu, run=run, rounds=5, noise=1e-3, seconds=seconds
        )
    samples = collect(folder, STUDIES).samples
    return repeat_table(samples, ratios_by_round(samples, STUDIES), STUDIES)


def test_a_run_that_differs_is_called_different_between_runs_only(tmp_path: Path) -> None:
    found = measured(tmp_path, RUNS, slower=1.5)
    assert list(found.columns) == REPEAT_COLUMNS
    assert set(zip(found["variant"], found["against"], strict=True)) == {("again", "python")}
    assert set(found["verdict"]) == {"same"}
    slow = name_of(SLOW)
    different = found[found["between_verdict"] == "slower"]
    assert set(different["run"]) == {slow} == set(found.loc[found["between_ratio"] < 0.9, "run"])
    assert len(different) == (found["run"] == slow).sum() > 0


def test_equal_runs_are_not_called_different(tmp_path: Path) -> None:
    assert set(measured(tmp_path, RUNS)["between_verdict"]) <= {"same", "unclear"}


def test_too_few_other_runs_give_no_result(tmp_path: Path) -> None:
    found = measured(tmp_path, RUNS[:3], slower=1.5)
    assert set(found["between_verdict"]) == {""}
    assert found["between_ratio"].map(math.isnan).all()


def test_between_runs_a_round_counts_by_the_median_of_its_samples() -> None:
    samples = table(
        [
            row(name, value, study="calls", case=CALLS.headline, run=run, round=number, sample=n)
            for run in RUNS
            for name, values in (("python", (3.0, 4.0, 90.0)), ("again", (1.0, 2.0, 3.0)))
            for number in range(3)
            for n, value in enumerate(values)
        ]
    )
    found = repeat_table(samples, ratios_by_round(samples, STUDIES), STUDIES)
    assert found["between_ratio"].tolist() == pytest.approx([2.0] * len(RUNS))
