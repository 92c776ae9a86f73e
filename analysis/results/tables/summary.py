"""build/summary.csv, runs.csv, rounds.csv and skipped.csv: what was measured, and what was not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analysis.base.statistics import Kind, kind_of
from analysis.results.collect import CELL, KEY
from analysis.results.tables import rows
from analysis.results.tables.medians import by_visit, chosen, chosen_and_fresh, over_runs
from analysis.study import Study


def summarise(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """One row per machine, study, variant, case and metric, with the columns of SummaryRow.

    `verified` is 1 if every sample is; `throttled` is the share of samples taken while the GPU gave
    a reason to lower its clocks.
    """
    columns = rows.columns(rows.SummaryRow)
    measured = chosen(samples)
    measured = measured[measured["status"] == "ok"]
    if measured.empty:
        return pd.DataFrame(columns=columns)
    cells = measured.assign(throttled=measured["throttle"] != "").groupby(KEY, sort=False)
    table = cells.agg(
        n=("value", "size"),
        verified=("verified", "min"),
        throttled=("throttled", "mean"),
        stale=("stale", "max"),
    ).astype({"stale": int})
    quartiles = [np.quantile(values, (0.25, 0.75)) for _, values in cells["value"]]
    table["q1"], table["q3"] = np.transpose(quartiles)

    def kind(cell: tuple[str, ...]) -> Kind:
        """The kind of a metric's values; by its unit for one that no longer exists."""
        _, study, _, _, metric, unit = cell
        known = studies[study].metrics.get(metric) if study in studies else None
        return known.values if known else kind_of(unit)

    table = table.join(over_runs(by_visit(measured, studies), KEY, kind)).reset_index()
    table["by_run"] = table["by_run"].map(rows.runs_text)
    return table[columns].sort_values(KEY, ignore_index=True)


def run_table(samples: pd.DataFrame) -> pd.DataFrame:
    """The newest run that the summary used of each variant and case, and the number of disturbed
    rounds of all runs, with the columns of RunRow."""
    rounds = chosen(samples).drop_duplicates([*CELL, "run", "round"]).groupby(CELL, sort=False)
    table = rounds.agg(run=("run", "max"), disturbed=("disturbed", "sum"))
    return table.astype({"disturbed": int}).reset_index()


def round_table(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The median of each time of every variant in its shown case, a row for each round with known
    speed of the host, with the columns of RoundRow."""
    shown = [
        (study.name, variant.name, study.shown_case(variant).id)
        for study in studies.values()
        for variant in study.subjects
    ]
    good = chosen_and_fresh(samples)
    is_shown = pd.MultiIndex.from_frame(good[CELL[1:]]).isin(shown)
    good = good[is_shown & (good["unit"] == "s") & good["core_copies"].notna()]
    table = good.groupby([*KEY, "run", "round"], sort=False).agg(
        median=("value", "median"), core_copies=("core_copies", "first")
    )
    return table.reset_index()


def skipped_table(samples: pd.DataFrame) -> pd.DataFrame:
    """Cells without a measurement, with the reason, and with the columns of SkippedRow."""
    table = chosen(samples)
    return table[table["status"] != "ok"].drop_duplicates(CELL).astype({"stale": int})
