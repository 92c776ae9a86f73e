"""Whether another run confirms the figures: the newest run against what the others say."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd

from analysis.store.collect import collect
from analysis.study import Case, Variant
from analysis.tables.links import Links
from analysis.tables.repeatability import REPEATABILITY_COLUMNS, repeatability
from tests.synthetic import CALLS, COPY, STUDIES, plausible, write_machine

RUNS = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 5)]


def measured(folder: Path, runs: list[str], *, off: float = 1.0) -> pd.DataFrame:
    """What is found of a machine whose runs differ as hosts do, the newest by `off` as well."""
    for run in runs:
        source = random.Random(run)
        factors = {variant.name: source.lognormvariate(0, 0.02) for variant in COPY.variants}

        def seconds(
            variant: Variant,
            case: Case,
            metric: str,
            run: str = run,
            factors: dict[str, float] = factors,
        ) -> float:
            newest = off if run == RUNS[-1] else 1.0
            return plausible(variant, case, metric) * factors[variant.name] * newest

        write_machine(folder, "box", COPY, run=run, rounds=5, noise=0.001, seconds=seconds)
    found = collect(folder, STUDIES)
    return repeatability(found.samples, STUDIES, found.published, found.machines, Links())


def test_three_runs_cannot_be_held_against_a_fourth(tmp_path: Path) -> None:
    found = measured(tmp_path, RUNS[:3])
    assert found.empty and list(found.columns) == REPEATABILITY_COLUMNS


def test_a_run_like_the_others_confirms_them(tmp_path: Path) -> None:
    (row,) = measured(tmp_path, RUNS).to_dict("records")
    assert (row["machine"], row["study"], row["runs"]) == ("box", "copy", 3)
    assert row["held_run"] == RUNS[-1]
    assert row["times_inside"] >= 0.8 * row["times"] > 0
    assert row["decided"] > 0 and row["contradicted"] == 0


def test_a_run_unlike_the_others_is_seen(tmp_path: Path) -> None:
    (row,) = measured(tmp_path, RUNS, off=3.0).to_dict("records")
    assert row["times_inside"] == 0
    assert row["ratios_inside"] > 0  # all of it is slower alike


def test_repeats_are_counted_apart(tmp_path: Path) -> None:
    cpu = [variant for variant in CALLS.variants if not variant.on_gpu]
    for run in RUNS:
        write_machine(tmp_path, "box", CALLS, variants=cpu, run=run, rounds=5)
    found = collect(tmp_path, STUDIES)
    table = repeatability(found.samples, STUDIES, found.published, found.machines, Links())
    (row,) = table.to_dict("records")
    assert row["repeats"] == 2  # by either clock
    assert row["repeats_different"] <= row["repeats"] < row["ratios"]
