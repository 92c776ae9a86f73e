"""build/summary.csv, runs.csv, rounds.csv and skipped.csv: what was measured, and what was not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.base.statistics import Kind, estimate, kind_of, outside_of_others
from analysis.results.collect import CELL, KEY, chosen, fresh, visits
from analysis.results.tables.rows import (
    RoundRow,
    RunRow,
    SkippedRow,
    SummaryRow,
    columns,
    runs_text,
)
from analysis.study import Study

Rounds = dict[str, list[float]]
"""Medians of the rounds of each run, oldest first."""


def summarise(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """One row per machine, study, variant, case and metric, with the columns of SummaryRow.

    Figures and their intervals are those of `statistics.estimate` over all fresh runs. `verified`
    is 1 if every sample is; `throttled` is the share of samples taken while the GPU gave a reason
    to lower its clocks.
    """
    measured = chosen(samples)
    measured = measured[measured["status"] == "ok"]
    if measured.empty:
        return pd.DataFrame(columns=columns(SummaryRow))
    cells = measured.assign(throttled=measured["throttle"] != "").groupby(KEY, sort=False)
    table = cells.agg(
        n=("value", "size"),
        verified=("verified", "min"),
        throttled=("throttled", "mean"),
        stale=("stale", "max"),
        runs=("run", "nunique"),
        hosts=("host", "nunique"),
    ).astype({"stale": int})
    table["q1"], table["q3"] = _quartiles(measured["value"], cells.ngroup(), table["n"])
    by_round = medians_by_round(measured, studies)
    table["rounds"] = by_round.groupby(KEY, sort=False).size()

    def kind(cell: tuple[str, ...]) -> Kind:
        """The kind of a metric's values; by its unit for one that no longer exists."""
        _, study, _, _, metric, unit = cell
        known = studies[study].metrics.get(metric) if study in studies else None
        return known.values if known else kind_of(unit)

    table = table.join(over_runs(by_round, KEY, kind)).reset_index()
    table["by_run"] = table["by_run"].map(runs_text)
    return table[columns(SummaryRow)].sort_values(KEY, ignore_index=True)


def _quartiles(values: pd.Series, cells: pd.Series, sizes: pd.Series) -> npt.NDArray[np.float64]:
    """The lower and the upper quartile of the values of each cell: [2, cells].

    `cells` are the numbers of the cells, from 0, and `sizes` their numbers of values. Cells of the
    same size are computed at once, because numpy takes long for a single one.
    """
    by_cell = values.to_numpy()[np.argsort(cells, kind="stable")]
    ends = sizes.cumsum().to_numpy()
    found = np.empty((2, len(sizes)))
    for size in sizes.unique():
        is_of_size = (sizes == size).to_numpy()
        places = ends[is_of_size, np.newaxis] - np.arange(size, 0, -1)
        found[:, is_of_size] = np.quantile(by_cell[places], (0.25, 0.75), axis=1)
    return found


def medians_by_round(measured: pd.DataFrame, studies: Mapping[str, Study]) -> pd.Series:
    """The median of a round of a visit's median, by KEY, run and round."""
    round_ = [*KEY, "run", "round"]
    numbered = measured.assign(visit=visits(measured, studies))
    by_visit = numbered.groupby([*round_, "visit"])["value"].median()
    by_round: pd.Series = by_visit.groupby(round_).median()
    return by_round


def over_runs(
    by_round: pd.Series, key: list[str], kind: Callable[[tuple[str, ...]], Kind]
) -> pd.DataFrame:
    """median, ci_low, ci_high, by_run (medians, oldest first) and apart of each `key`, from values
    by `key`, run and round, in that order. `kind` is that of the values of a key."""
    cells = rounds_by_run(by_round)
    rows = []
    for cell, rounds in cells.items():
        medians = [median(of_run) for of_run in rounds.values()]
        apart = sum(outside_of_others(medians, kind(cell)))
        rows.append((*estimate([*rounds.values()], kind(cell)), medians, apart))
    names = ["median", "ci_low", "ci_high", "by_run", "apart"]
    return pd.DataFrame(rows, index=pd.MultiIndex.from_tuples(cells, names=key), columns=names)


def rounds_by_run(by_round: pd.Series) -> dict[tuple[str, ...], Rounds]:
    """Values in `by_round`, which has key, run and round, grouped by key and run, oldest first."""
    cells: dict[tuple[str, ...], Rounds] = {}
    for (*key, run, _), value in zip(by_round.index.tolist(), by_round.tolist(), strict=True):
        cells.setdefault(tuple(key), {}).setdefault(run, []).append(value)
    return cells


def runs(samples: pd.DataFrame) -> pd.DataFrame:
    """The newest run that the summary used of each variant and case, and the number of disturbed
    rounds of all runs, with the columns of RunRow."""
    rounds = chosen(samples).drop_duplicates([*CELL, "run", "round"]).groupby(CELL, sort=False)
    table = rounds.agg(run=("run", "max"), disturbed=("disturbed", "sum")).astype(
        {"disturbed": int}
    )
    return table.reset_index()[columns(RunRow)]


def rounds(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The median of each time of every variant in its shown case, a row for each round with known
    speed of the host, with the columns of RoundRow."""
    shown = [
        (study.name, variant.name, study.shown_case(variant).id)
        for study in studies.values()
        for variant in study.subjects
    ]
    good = fresh(chosen(samples))
    is_shown = pd.MultiIndex.from_frame(good[CELL[1:]]).isin(shown)
    good = good[is_shown & (good["unit"] == "s") & good["core_copies"].notna()]
    table = good.groupby([*KEY, "run", "round"], sort=False).agg(
        median=("value", "median"), core_copies=("core_copies", "first")
    )
    return table.reset_index()[columns(RoundRow)]


def skipped(samples: pd.DataFrame) -> pd.DataFrame:
    """Cells without a measurement, with the reason, and with the columns of SkippedRow."""
    table = chosen(samples)
    table = table[table["status"] != "ok"].drop_duplicates(CELL).astype({"stale": int})
    return table[columns(SkippedRow)].reset_index(drop=True)
