"""Plausible values that tables and fits cannot be made of: only their run or fit is left out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from analysis.results.store.keys import LONGEST_S, SMALLEST
from analysis.results.tables.links import Fits, collect_fits, fits_text, read_fits
from analysis.results.tables.of_study import REFUSED, study_tables
from analysis.results.tables.summary import summarise
from analysis.results.tables.together import put_together
from analysis.study import Case, Variant, discover
from tests.linked import CALIBRATION, GATHER, made_up, true_seconds
from tests.synthetic import CALLS, STUDIES, name_of, write_machine

RUNS = [f"2026-01-0{day}T03:04:05Z" for day in (1, 2, 3)]
ODD_S = 123.0
"""A time that the tables of this test cannot be made of."""


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two machines with three runs each; the second run of `bad-box` has ODD_S."""
    for machine in ("good-box", "bad-box"):
        for run in RUNS:
            write_machine(tmp_path, machine, CALLS, rounds=2, run=run)
    write_machine(
        *(tmp_path, "bad-box", CALLS), rounds=2, run=RUNS[1], noise=0.0, seconds=lambda *_: ODD_S
    )
    return tmp_path


def odd(samples: pd.DataFrame, _: object) -> pd.DataFrame:
    if (samples["value"] == ODD_S).any():
        raise OverflowError("math range error")
    return summarise(samples, STUDIES)


def test_a_run_that_tables_cannot_be_made_of_is_left_out_alone(results: Path) -> None:
    with patch("analysis.results.tables.summary.summarise", odd):
        texts = study_tables(results, CALLS.name, STUDIES, Fits())
    ((name, reason),) = json.loads(texts[REFUSED]).items()
    assert name == f"bad-box/calls/{name_of(RUNS[1])}.json"
    assert reason.startswith(f"{name}: ") and reason.isprintable()
    assert "expected values that tables can be made of, got OverflowError: math range" in reason
    summary = pd.read_csv(StringIO(texts["summary.csv"]))
    assert dict(summary.groupby("machine")["runs"].max()) == {"bad-box": 2, "good-box": 3}


def test_an_error_of_every_run_is_no_fault_of_results(results: Path) -> None:
    with (
        patch("analysis.results.tables.summary.summarise", side_effect=KeyError("typo")),
        pytest.raises(KeyError, match="typo"),
    ):
        study_tables(results, CALLS.name, STUDIES, Fits())


@pytest.mark.parametrize("values", [(SMALLEST, LONGEST_S), (LONGEST_S,), (SMALLEST,)])
def test_the_ends_of_the_range_of_times_give_finite_tables(
    tmp_path: Path, values: tuple[float, ...]
) -> None:
    for run in RUNS[:2]:
        write_machine(
            tmp_path,
            "box",
            CALLS,
            rounds=2,
            run=run,
            noise=0.0,
            seconds=lambda variant, *_: values[
                CALLS.variant_names.index(variant.name) % len(values)
            ],
        )
    texts = study_tables(tmp_path, CALLS.name, STUDIES, Fits())
    assert json.loads(texts[REFUSED]) == {}
    for name in ("summary", "ratios", "claims"):
        numbers = pd.read_csv(StringIO(texts[f"{name}.csv"])).select_dtypes("number")
        assert not np.isinf(numbers.to_numpy()).any(), name


def suspended(cases: int) -> Callable[[Variant, Case, str], float]:
    """The true times, but 1,000 s in the first cases."""
    slow = [(v.name, c.id) for v in CALIBRATION.variants for c in v.cases][:: max(1, cases)][:5]

    def seconds(variant: Variant, case: Case, metric: str) -> float:
        is_slow = (variant.name, case.id) in slow
        return 1000.0 if is_slow else true_seconds(variant, case, metric)

    return seconds


def test_a_suspended_calibration_costs_no_other_machine(tmp_path: Path) -> None:
    root = made_up(tmp_path)
    for study in (GATHER, CALIBRATION):
        write_machine(root / "results", "slow-box", study, seconds=suspended(25), rounds=1)
    studies = discover(root)
    fits = collect_fits(root / "results", studies)
    assert "box" in fits and {"slow-box"} == {*fits, *fits.left_out} - {"box"}
    of_studies = {n: study_tables(root / "results", n, studies, fits) for n in studies}
    put_together(of_studies, fits, root / "results", tmp_path / "tables")
    parameters = pd.read_csv(tmp_path / "tables" / "model_parameters.csv")
    assert "box" in set(parameters["machine"])


def test_a_fit_that_fails_is_left_out_with_file_field_and_reason(tmp_path: Path) -> None:
    root = made_up(tmp_path)
    studies = discover(root)

    def failing(_: object) -> None:
        raise ValueError("Residuals are not finite in the initial point.")

    with patch("analysis.results.tables.links.fit", failing):
        fits = collect_fits(root / "results", studies)
    (tmp_path / "links.json").write_text(fits_text(fits))
    fits = read_fits(tmp_path / "links.json")
    assert fits == {} and [*fits.left_out] == ["box"]
    of_studies = {n: study_tables(root / "results", n, studies, fits) for n in studies}
    refused = put_together(of_studies, fits, root / "results", tmp_path / "tables")
    reason = refused["box: link model"]
    assert reason.startswith(f"box/{CALIBRATION.name}/")
    assert ".json: gpu_time: expected times that a link has, got ValueError: Residuals" in reason


def test_a_translation_run_with_small_pools_alone_has_no_walks(tmp_path: Path) -> None:
    root = made_up(tmp_path)
    fits = collect_fits(root / "results", discover(root))
    assert math.isfinite(fits["box"].parameters.link_rate)
    with patch("analysis.results.model.fit.FARTHEST_HELD", 1e12):
        without = collect_fits(root / "results", discover(root))
    assert without.left_out == {} and math.isfinite(without["box"].parameters.link_rate)
    assert math.isnan(without["box"].parameters.walk)
