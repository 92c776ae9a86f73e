"""Confirmation of figures by another run: the newest run against the others."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd
import pytest
from analysis.results.tables.newest import Apart, newest_apart

from analysis.results.collect import collect
from analysis.results.tables.repeatability import REPEATABILITY_COLUMNS, repeatability
from analysis.study import Case, Variant
from tests.results.tables.rows import rounds, table
from tests.study.claims.studies import measure, write_study
from tests.synthetic import CALLS, COPY, STUDIES, name_of, plausible, write_machine

RUNS = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 5)]


def measured(folder: Path, runs: list[str], *, off: float = 1.0) -> pd.DataFrame:
    """Table of a machine whose runs differ like hosts, the newest one by `off` in addition."""
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
    return repeatability(found.samples, STUDIES, found.published, found.machines, {})


def test_three_runs_cannot_be_held_against_a_fourth(tmp_path: Path) -> None:
    found = measured(tmp_path, RUNS[:3])
    assert found.empty and list(found.columns) == REPEATABILITY_COLUMNS


def test_a_stale_run_is_not_one_of_enough() -> None:
    def apart(stale: bool) -> Apart:
        others = (rounds("bytewise", [1.0, 1.0], run=run) for run in RUNS[1:])
        return newest_apart(table(rounds("bytewise", [9.0], run=RUNS[0], stale=stale), *others))

    assert apart(stale=True).runs.empty
    assert list(apart(stale=False).kept["value"]) == [9.0, 1.0, 1.0, 1.0, 1.0]


def test_a_run_like_the_others_confirms_them(tmp_path: Path) -> None:
    (row,) = measured(tmp_path, RUNS).to_dict("records")
    assert (row["machine"], row["study"], row["runs"]) == ("box", "copy", 3)
    assert row["held_run"] == name_of(RUNS[-1])
    assert row["times_inside"] >= 0.8 * row["times"] > 0
    assert row["decided"] > 0 and row["contradicted"] == 0


def test_a_run_unlike_the_others_is_seen(tmp_path: Path) -> None:
    (row,) = measured(tmp_path, RUNS, off=3.0).to_dict("records")
    assert row["on_any_host"] == 0
    assert row["ratios_inside"] > 0  # all variants are slower by the same factor


@pytest.mark.parametrize(("slower", "different"), [(1.0, 0), (1.5, 2)])
def test_repeats_are_counted_separately(tmp_path: Path, slower: float, different: int) -> None:
    cpu = [variant for variant in CALLS.variants if not variant.on_gpu]

    def seconds(variant: Variant, case: Case, metric: str) -> float:
        return 1e-3 * (slower if variant.name == "again" else 1.0)

    for run in RUNS:
        write_machine(
            tmp_path, "box", CALLS, variants=cpu, run=run, rounds=5, noise=1e-4, seconds=seconds
        )
    found = collect(tmp_path, STUDIES)
    compared = repeatability(found.samples, STUDIES, found.published, found.machines, {})
    (row,) = compared.to_dict("records")
    assert row["repeats"] == 2 < row["ratios"]  # by either clock
    assert row["repeats_different"] == different


def test_confirmed_figures_of_the_newest_run_are_counted(tmp_path: Path) -> None:
    def claimed(name: str, **test: object) -> dict[str, object]:
        return {"id": name, "says": "So.", "test": {"of": "slow", "metric": "gpu_time"} | test}

    study = write_study(
        tmp_path,
        claimed("flips", kind="speedup", over="fast", at_most=1),
        claimed("stays", kind="speedup", over="host", metric="host_time", at_most=1),
        claimed("stays_too", kind="speedup", over="wide", at_most=1),
        # Only the newest run decides it.
        claimed("open", kind="figure", at_most=8e-3),
    )
    before = {"slow": 8e-3, "fast": 2e-3, "wide": 2.2e-3, "host": 4e-3}
    results, metrics = tmp_path / "results", 2
    for run, moved in zip(RUNS, (0.999, 1.001, 1.002, 0.999), strict=True):
        seconds = {name: moved * time for name, time in before.items()}
        if run == RUNS[-1]:
            # Against slow, fast is the slower one now, host is the same, wide a seventh faster.
            seconds |= {"fast": 16e-3, "host": seconds["slow"], "wide": 1.9e-3}
        if run in (RUNS[0], RUNS[-1]):
            seconds["limit"] = 1e-3
        measure(results, study, seconds, run=run, noise=0)
    studies = {study.name: study}
    found = collect(results, studies)
    compared = repeatability(found.samples, studies, found.published, found.machines, {})
    (row,) = compared.to_dict("records")
    assert (row["runs"], row["held_run"]) == (3, name_of(RUNS[-1]))
    assert row["times"] == metrics * len(["slow", "slow in the other case", "fast", "wide", "host"])
    assert row["times_inside"] == metrics * 2  # those of slow
    # Pairs with host are by one metric. Those of fast have turned round.
    assert (row["ratios"], row["ratios_inside"]) == (metrics * 3 + 3, 0)
    assert (row["decided"], row["contradicted"]) == (row["ratios"], metrics * 2 + 1)
    assert (row["claims"], row["claims_flipped"]) == (3, 1)
