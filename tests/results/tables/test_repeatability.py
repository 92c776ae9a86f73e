"""Confirmation of figures by another run: each run against the others."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from analysis.results.collect import collect
from analysis.results.tables.ratios import ratios_by_round
from analysis.results.tables.repeatability import REPEATABILITY_COLUMNS, repeatability
from analysis.study import Case, Study, Variant
from tests.results.tables.rows import rounds, table
from tests.study.claims.studies import measure, write_study
from tests.synthetic import CALLS, COPY, STUDIES, plausible, write_machine

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
    return compared(collect(folder, STUDIES).samples, STUDIES)


def compared(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    return repeatability(samples, ratios_by_round(samples, studies), studies)


def test_three_runs_cannot_be_held_against_a_fourth(tmp_path: Path) -> None:
    found = measured(tmp_path, RUNS[:3])
    assert found.empty and list(found.columns) == REPEATABILITY_COLUMNS


def test_a_stale_run_is_not_one_of_enough() -> None:
    def found(stale: bool) -> pd.DataFrame:
        others = (rounds("bytewise", [1.0, 1.0], run=run) for run in RUNS[1:])
        first = rounds("bytewise", [9.0], run=RUNS[0], stale=stale)
        return compared(table(first, *others), STUDIES)

    assert found(stale=True).empty
    (row,) = found(stale=False).to_dict("records")
    assert (row["times"], row["times_inside"]) == (4, 3)  # the first run is unlike the others


def test_a_run_like_the_others_confirms_them(tmp_path: Path) -> None:
    (row,) = measured(tmp_path, RUNS).to_dict("records")
    assert (row["machine"], row["study"], row["runs"]) == ("box", "copy", 4)
    assert row["times_inside"] >= 0.8 * row["times"] > 0
    assert row["decided"] > 0 and row["contradicted"] == 0


def test_a_run_unlike_the_others_is_seen(tmp_path: Path) -> None:
    (row,) = measured(tmp_path, RUNS, off=3.0).to_dict("records")
    assert row["times_inside"] == row["times"] * 3 / 4
    assert row["ratios_inside"] >= 0.8 * row["ratios"]  # all are slower by the same factor


@pytest.mark.parametrize(("slower", "different"), [(1.0, 0), (1.5, 2)])
def test_repeats_are_counted_separately(tmp_path: Path, slower: float, different: int) -> None:
    cpu = [variant for variant in CALLS.variants if not variant.on_gpu]

    def seconds(variant: Variant, case: Case, metric: str) -> float:
        return 1e-3 * (slower if variant.name == "again" else 1.0)

    for run in RUNS:
        write_machine(
            tmp_path, "box", CALLS, variants=cpu, run=run, rounds=5, noise=1e-4, seconds=seconds
        )
    (row,) = compared(collect(tmp_path, STUDIES).samples, STUDIES).to_dict("records")
    assert row["repeats"] == 2 < row["ratios"]  # by either clock
    assert row["repeats_different"] == different


def test_decided_comparisons_that_a_run_turns_round_are_counted(tmp_path: Path) -> None:
    study = write_study(
        tmp_path,
        {
            "id": "a",
            "says": "So.",
            "test": {"kind": "speedup", "of": "slow", "over": "fast"}
            | {"metric": "gpu_time", "at_most": 1},
        },
    )
    results = tmp_path / "results"
    for run, moved in zip(RUNS, (0.999, 1.001, 1.002, 0.999), strict=True):
        seconds = {"slow": 8e-3 * moved, "fast": (16e-3 if run == RUNS[-1] else 2e-3) * moved}
        measure(results, study, seconds, run=run, noise=0)
    studies = {study.name: study}
    (row,) = compared(collect(results, studies).samples, studies).to_dict("records")
    clocks = 2
    assert row["ratios"] == 4 * clocks
    # The other runs agree only where the last is left out, and it contradicts them by both clocks.
    assert (row["decided"], row["contradicted"]) == (clocks, clocks)


def test_a_time_of_0_has_no_relative_width() -> None:
    never = (rounds("bytewise", [0.0, 0.0], run=run) for run in RUNS)
    (row,) = compared(table(*never), STUDIES).to_dict("records")
    assert row["times_inside"] == 4 and pd.isna(row["half_width"])
