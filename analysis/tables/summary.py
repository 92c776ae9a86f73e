"""build/summary.csv, build/ratios.csv and build/skipped.csv from the samples of every machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

import numpy as np
import pandas as pd

from analysis.modes import count_modes
from analysis.statistics import estimate, verdict
from analysis.store.collect import CELL, KEY, chosen, visits
from analysis.study import Study, Variant
from analysis.tables.rows import RUN_SEPARATOR, RatioRow, RunRow, SkippedRow, SummaryRow, columns

SUMMARY_COLUMNS = columns(SummaryRow)
RATIO_KEY = ["machine", "study", "variant", "against", "case", "metric"]
RATIO_COLUMNS = columns(RatioRow)
VISIT = ["machine", "case", "metric", "run", "round", "visit"]
RUN_COLUMNS = columns(RunRow)
SKIPPED_COLUMNS = columns(SkippedRow)


def summarise(samples: pd.DataFrame) -> pd.DataFrame:
    """One row per machine, study, variant, case and metric, in SUMMARY_COLUMNS.

    `median` is the median over all fresh runs of each run's median over rounds, and its interval is
    for another run; from few runs both are the newest one's (`statistics.estimate`). `verified` is
    1 where every sample is; `throttled` is the share of samples taken while the GPU gave a reason
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
    values = measured["value"].to_numpy()
    quartiles = {
        key: np.quantile(values[rows], (0.25, 0.75)) for key, rows in cells.indices.items()
    }
    table["q1"], table["q3"] = np.transpose([quartiles[key] for key in table.index])
    by_round = measured.groupby([*KEY, "run", "round"])["value"].median()
    table["rounds"] = by_round.groupby(KEY, sort=False).size()
    table = table.join(_over_runs(by_round, KEY))
    table["by_run"] = [RUN_SEPARATOR.join(f"{one:.7g}" for one in runs) for runs in table["by_run"]]
    table["stale"] = table["stale"].astype(int)
    return table.reset_index()[SUMMARY_COLUMNS].sort_values(KEY, ignore_index=True)


def _over_runs(by_round: pd.Series, key: list[str]) -> pd.DataFrame:
    """median, ci_low, ci_high, by_run (medians, oldest first) and modes of each `key`, from values
    by `key`, run and round, in that order."""
    cells: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for (*cell, run, _), value in zip(by_round.index, by_round, strict=True):
        cells.setdefault(tuple(cell), {}).setdefault(run, []).append(value)
    runs = [list(own.values()) for own in cells.values()]
    rows = [(*estimate(one), [median(rounds) for rounds in one], count_modes(one)) for one in runs]
    names = ["median", "ci_low", "ci_high", "by_run", "modes"]
    return pd.DataFrame(rows, index=pd.MultiIndex.from_tuples(cells, names=key), columns=names)


def rankings(study: Study) -> Iterator[tuple[Variant, Variant]]:
    """Further pairs (variant, other) to compare in the variant's shown case, so that every step is
    with all before it."""
    compared = set(study.comparisons())
    steps = [step for step in study.with_role("step", "beyond") if not study.is_repeat(step)]
    for index, step in enumerate(steps):
        yield from ((step, other) for other in steps[:index] if (step, other) not in compared)


def ratios(by_round: pd.Series) -> pd.DataFrame:
    """Each comparison over all runs of `ratios_by_round`, in RATIO_COLUMNS. Of ratios with several
    modes nothing is said."""
    if by_round.empty:
        return pd.DataFrame(columns=RATIO_COLUMNS)
    table = _over_runs(by_round, RATIO_KEY)
    table["verdict"] = [
        verdict(*row) if modes == 1 else "unclear"
        for *row, modes in table.itertuples(index=False, name=None)
    ]
    table["runs"] = table["by_run"].map(len)
    return table.rename(columns={"median": "ratio"}).reset_index()[RATIO_COLUMNS]


def ratios_by_run(by_round: pd.Series) -> pd.DataFrame:
    """Each comparison in each run by itself: RATIO_COLUMNS and `run`."""
    columns = [*RATIO_COLUMNS, "run"]
    if by_round.empty:
        return pd.DataFrame(columns=columns)
    tables = [ratios(own).assign(run=run) for run, own in by_round.groupby(level="run")]
    return pd.concat(tables).sort_values([*RATIO_KEY, "run"], ignore_index=True)[columns]


def ratios_by_round(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.Series:
    """Speed-ups: the other's time over the variant's, above 1 where the variant is faster.

    By RATIO_KEY, run and round. Pairs the two variants' medians of one run visit by visit, in every
    run that has fresh samples of both; the ratio of a round is the median of its visits'. Where
    the CPU takes part in either, only host_time compares them.
    """
    fresh = chosen(samples)
    fresh = fresh[(fresh["status"] == "ok") & ~fresh["stale"].astype(bool)]
    fresh = fresh[fresh["metric"].isin(["gpu_time", "host_time", "op_time"])]
    if fresh.empty:
        return pd.Series(dtype=float)
    fresh = fresh.assign(visit=visits(fresh, studies))
    by_visit = fresh.groupby(["study", "variant", *VISIT], sort=False)["value"].median()
    pairs = [_paired(study, by_visit) for study in studies.values()]
    by_round: pd.Series = pd.concat(pairs).groupby([*RATIO_KEY, "run", "round"])["ratio"].median()
    return by_round


def _paired(study: Study, by_visit: pd.Series) -> pd.DataFrame:
    """Every comparison of `study` in every visit that has both sides; a row with its `ratio`."""
    shown = {pair: study.shown_case(pair[0]).id for pair in rankings(study)}
    compared = pd.DataFrame(
        [
            (one.name, other.name, shown.get((one, other)), one.host_work or other.host_work)
            for one, other in [*study.comparisons(), *shown]
        ],
        columns=["variant", "against", "only", "has_host_work"],
    )
    own = by_visit.reset_index()
    own = own[own["study"] == study.name]
    other = own.rename(columns={"variant": "against", "value": "other"})
    both = own.merge(compared, on="variant").merge(other, on=["study", "against", *VISIT])
    both = both[both["only"].isna() | (both["only"] == both["case"])]
    both = both[~both["has_host_work"].astype(bool) | (both["metric"] != "gpu_time")]
    return both.assign(ratio=both["other"] / both["value"])


def repeats(compared: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The rows of `ratios_by_run` that compare two entries of the same program."""
    same = {
        (study.name, variant.name, variant.after)
        for study in studies.values()
        for variant in study.variants
        if study.is_repeat(variant)
    }
    pairs = pd.MultiIndex.from_frame(compared[["study", "variant", "against"]])
    return compared[pairs.isin(list(same))]


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
