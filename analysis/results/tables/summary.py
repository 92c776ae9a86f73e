"""build/summary.csv, build/runs.csv and build/skipped.csv: what was measured, and what was not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.base.statistics import Kind, estimate, kind_of, outside_of_others
from analysis.results.collect import CELL, KEY, chosen, visits
from analysis.results.tables.rows import RunRow, SkippedRow, SummaryRow, columns, runs_text
from analysis.study import Study

SUMMARY_COLUMNS = columns(SummaryRow)
RUN_COLUMNS = columns(RunRow)
SKIPPED_COLUMNS = columns(SkippedRow)


def summarise(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """One row per machine, study, variant, case and metric, in SUMMARY_COLUMNS.

    Figures and their intervals are those of `statistics.estimate` over all fresh runs. `verified`
    is 1 if every sample is; `throttled` is the share of samples taken while the GPU gave a reason
    to lower its clocks.
    """
    measured = chosen(samples)
    measured = measured[measured["status"] == "ok"]
    if measured.empty:
        return pd.DataFrame(columns=SUMMARY_COLUMNS)
    cells = measured.assign(throttled=measured["throttle"] != "").groupby(KEY, sort=False)
    table = cells.agg(
        n=("value", "size"),
        verified=("verified", "min"),
        throttled=("throttled", "mean"),
        stale=("stale", "max"),
        runs=("run", "nunique"),
        hosts=("host", "nunique"),
    )
    table["q1"], table["q3"] = _quartiles(measured["value"], cells.ngroup(), table["n"])
    by_round = medians_by_round(measured, studies)
    table["rounds"] = by_round.groupby(KEY, sort=False).size()
    table = table.join(over_runs(by_round, KEY, kinds(studies)))
    table["by_run"] = table["by_run"].map(runs_text)
    table["stale"] = table["stale"].astype(int)
    return table.reset_index()[SUMMARY_COLUMNS].sort_values(KEY, ignore_index=True)


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


def kinds(studies: Mapping[str, Study]) -> Callable[[tuple[str, ...]], Kind]:
    """The kind of values of a metric, by KEY; by its unit for one that no longer exists."""

    def kind(key: tuple[str, ...]) -> Kind:
        of = dict(zip(KEY, key, strict=True))
        study = studies.get(of["study"])
        metric = study.metrics.get(of["metric"]) if study else None
        return metric.values if metric else kind_of(of["unit"])

    return kind


def medians_by_round(measured: pd.DataFrame, studies: Mapping[str, Study]) -> pd.Series:
    """The median over the visits of each round of a visit's median, by KEY, run and round."""
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
    rows = []
    cells = rounds_by_run(by_round)
    for cell, rounds in cells.items():
        medians = [median(one) for one in rounds.values()]
        apart = sum(outside_of_others(medians, kind(cell)))
        rows.append((*estimate([*rounds.values()], kind(cell)), medians, apart))
    names = ["median", "ci_low", "ci_high", "by_run", "apart"]
    return pd.DataFrame(rows, index=pd.MultiIndex.from_tuples(cells, names=key), columns=names)


def rounds_by_run(by_round: pd.Series) -> dict[tuple[str, ...], dict[str, list[float]]]:
    """Values in `by_round`, which has key, run and round, grouped by key and run, oldest first."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for (*key, run, _), value in zip(by_round.index.tolist(), by_round.tolist(), strict=True):
        found.setdefault(tuple(key), {}).setdefault(run, []).append(value)
    return found


def runs(samples: pd.DataFrame) -> pd.DataFrame:
    """The newest run that the summary used of each variant and case, and how many rounds of all
    that it used were disturbed, in RUN_COLUMNS."""
    table = chosen(samples)
    if table.empty:
        return pd.DataFrame(columns=RUN_COLUMNS)
    rounds = table.drop_duplicates([*CELL, "run", "round"]).groupby(CELL, sort=False)
    found = rounds.agg(run=("run", "max"), disturbed=("disturbed", "sum"))
    return found.astype({"disturbed": int}).reset_index()[RUN_COLUMNS]


def skipped(samples: pd.DataFrame) -> pd.DataFrame:
    """Cases without a measurement, with the reason, in SKIPPED_COLUMNS."""
    table = chosen(samples)
    if table.empty:
        return pd.DataFrame(columns=SKIPPED_COLUMNS)
    table = table[table["status"] != "ok"].drop_duplicates(["machine", "study", "variant", "case"])
    table["stale"] = table["stale"].astype(int)
    return table[SKIPPED_COLUMNS].reset_index(drop=True)
