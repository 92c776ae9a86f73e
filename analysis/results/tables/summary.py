"""From samples to figures: build/summary.csv, runs.csv, rounds.csv and skipped.csv.

Samples become the median of a visit, of a round's visits, of a run's rounds. `over_runs` makes the
figure of runs, with its interval, for every table.
"""

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from analysis.base.statistics import Kind, estimate, kind_of, outside_of_others
from analysis.results.collect import CELL, KEY
from analysis.results.tables.rows import TABLES, runs_text, table_of
from analysis.study import Study

VISIT = [*KEY, "run", "host", "round", "visit"]
Rounds = dict[str, list[float]]
"""Values of the rounds of each run, oldest first."""


def chosen(samples: pd.DataFrame) -> pd.DataFrame:
    """The samples that a summary uses: of a variant and case, those of all fresh runs, else of the
    newest run; skipped ones only if there are no others, and of a cell that failed only the rows
    that say so."""
    cell = samples.groupby(CELL, sort=False).ngroup()
    kept, is_stale = samples, samples["stale"].astype(bool)
    if is_stale.any():
        newest = samples["run"].astype("category").cat.codes  # in the order of the runs' times
        is_newest = newest == newest.groupby(cell).transform("max")
        all_stale = is_stale.groupby(cell).transform("all")
        kept = samples[~is_stale | (all_stale & is_newest)]
    is_skipped = kept["status"] == "skipped"
    kept = kept[~is_skipped | is_skipped.groupby(cell).transform("all")]
    has_failed = kept["status"] == "failed"
    kept = kept[has_failed | ~has_failed.groupby(cell).transform("any")]
    return kept.reset_index(drop=True)


def fresh(used: pd.DataFrame) -> pd.DataFrame:
    """Those of the `chosen` samples that have a value and belong to the current code."""
    return used[(used["status"] == "ok") & ~used["stale"].astype(bool)]


def by_visit(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.Series:
    """The median of each visit's samples, by VISIT. Visits of a round are numbered from 0 and take
    the same number of samples each."""
    planned = {
        (study.name, case.id): case.visits
        for study in studies.values()
        for variant in study.variants
        for case in variant.cases
    }
    cell, cells = pd.MultiIndex.from_frame(samples[["study", "case"]]).factorize()
    visits = np.array([planned.get(one, 1) for one in cells], int)[cell]
    of_round = samples.groupby([*KEY, "run", "round"], sort=False)["sample"]
    before = of_round.rank(method="first").to_numpy() - 1
    number = (before * visits // of_round.transform("size").to_numpy()).astype(int)
    medians: pd.Series = samples.assign(visit=number).groupby(VISIT)["value"].median()
    return medians


def rounds_by_run(values: pd.Series, key: list[str]) -> dict[tuple[str, ...], Rounds]:
    """The median of each round's `values`, which are by visit or by round: by `key` and run."""
    levels = [values.index.get_level_values(name).tolist() for name in (*key, "run", "round")]
    rounds: dict[tuple[Any, ...], list[float]] = {}
    for place, value in zip(zip(*levels, strict=True), values.tolist(), strict=True):
        rounds.setdefault(place, []).append(value)
    cells: dict[tuple[str, ...], Rounds] = {}
    for place in sorted(rounds):  # of few values, pandas would take several times as long
        runs = cells.setdefault(place[: len(key)], {})
        runs.setdefault(place[-2], []).append(median(rounds[place]))
    return cells


def medians_of(runs: Rounds) -> list[float]:
    """The median of each run, oldest first."""
    return [float(median(rounds)) for rounds in runs.values()]


def over_runs(
    values: pd.Series, key: list[str], kind: Callable[[tuple[str, ...]], Kind]
) -> pd.DataFrame:
    """The figure of each `key`, which says the `kind` of its values: median, ci_low, ci_high,
    by_run, apart, rounds, runs and hosts."""
    cells = rounds_by_run(values, key)
    rows = []
    for cell, runs in cells.items():
        medians, rounds = medians_of(runs), sum(map(len, runs.values()))
        apart = sum(outside_of_others(medians, kind(cell)))
        rows.append((*estimate([*runs.values()], kind(cell)), medians, apart, rounds, len(runs)))
    names = ["median", "ci_low", "ci_high", "by_run", "apart", "rounds", "runs"]
    index = pd.MultiIndex.from_tuples(cells, names=key)
    hosts = values.reset_index("host").groupby(level=key)["host"].nunique()
    return pd.DataFrame(rows, index=index, columns=names).assign(hosts=hosts)


def summarise(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """One row per machine, study, variant, case and metric. `verified` is 1 if every sample is,
    `throttled` the share of samples with a reason for lowered clocks."""
    measured = chosen(samples)
    measured = measured[measured["status"] == "ok"]
    if measured.empty:
        return table_of("summary")
    cells = measured.assign(throttled=measured["throttle"] != "").groupby(KEY, sort=False)
    table = cells.agg(
        n=("value", "size"),
        verified=("verified", "min"),
        throttled=("throttled", "mean"),
        stale=("stale", "max"),
    ).astype({"stale": int})
    table["q1"], table["q3"] = cells["value"].quantile(0.25), cells["value"].quantile(0.75)

    def kind(cell: tuple[str, ...]) -> Kind:
        """The kind of a metric's values; by its unit for one that no longer exists."""
        _, study, _, _, metric, unit = cell
        known = studies[study].metrics.get(metric) if study in studies else None
        return known.values if known else kind_of(unit)

    table = table.join(over_runs(by_visit(measured, studies), KEY, kind)).reset_index()
    table["by_run"] = table["by_run"].map(runs_text)
    return table[[*TABLES["summary"]]].sort_values(KEY, ignore_index=True)


def run_table(used: pd.DataFrame) -> pd.DataFrame:
    """The newest run among the `chosen` samples of each variant and case, and the number of
    disturbed rounds of all runs."""
    rounds = used.drop_duplicates([*CELL, "run", "round"]).groupby(CELL, sort=False)
    table = rounds.agg(run=("run", "max"), disturbed=("disturbed", "sum"))
    return table.astype({"disturbed": int}).reset_index()


def round_table(used: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The median of each time of every variant in its shown case, a row for each round with known
    speed of the host."""
    shown = [
        (study.name, variant.name, study.shown_case(variant).id)
        for study in studies.values()
        for variant in study.subjects
    ]
    good = fresh(used)
    is_shown = pd.MultiIndex.from_frame(good[CELL[1:]]).isin(shown)
    good = good[is_shown & (good["unit"] == "s") & good["core_copies"].notna()]
    table = good.groupby([*KEY, "run", "round"], sort=False).agg(
        median=("value", "median"), core_copies=("core_copies", "first")
    )
    return table.reset_index()


def skipped_table(used: pd.DataFrame) -> pd.DataFrame:
    """Cells without a measurement, with the reason."""
    return used[used["status"] != "ok"].drop_duplicates(CELL).astype({"stale": int})
