"""build/summary.csv, build/ratios.csv and build/skipped.csv from the samples of every machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
RUN_COLUMNS = columns(RunRow)
SKIPPED_COLUMNS = columns(SkippedRow)


def summarise(samples: pd.DataFrame) -> pd.DataFrame:
    """One row per machine, study, variant, case and metric, in SUMMARY_COLUMNS.

    `median` is the median over all fresh runs of each run's median over rounds; its interval is
    for another run, or from few runs that of the newest one (`statistics.estimate`). `verified` is
    1 where every sample is; `throttled` is the share of samples taken while the GPU gave a reason
    to lower its clocks.
    """
    measured = chosen(samples)
    measured = measured[measured["status"] == "ok"]
    if measured.empty:
        return pd.DataFrame(columns=SUMMARY_COLUMNS)
    table = measured.groupby(KEY, sort=False).agg(
        q1=("value", lambda values: values.quantile(0.25)),
        q3=("value", lambda values: values.quantile(0.75)),
        n=("value", "size"),
        verified=("verified", "min"),
        throttled=("throttle", lambda reasons: (reasons != "").mean()),
        stale=("stale", "max"),
        runs=("run", "nunique"),
        hosts=("host", "nunique"),
    )
    by_round = measured.groupby([*KEY, "run", "round"])["value"].median()
    table["rounds"] = by_round.groupby(KEY, sort=False).size()
    table = table.join(_over_runs(by_round, KEY))
    table["by_run"] = [RUN_SEPARATOR.join(f"{one:.7g}" for one in runs) for runs in table["by_run"]]
    table["stale"] = table["stale"].astype(int)
    return table.reset_index()[SUMMARY_COLUMNS].sort_values(KEY, ignore_index=True)


def _over_runs(by_round: pd.Series, key: list[str]) -> pd.DataFrame:
    """median, ci_low, ci_high, by_run (medians, oldest first) and modes of each `key`, from values
    by `key`, run and round."""
    runs = by_round.groupby([*key, "run"]).agg(list).groupby(key).agg(list)
    rows = [
        (*estimate(one), [float(np.median(rounds)) for rounds in one], count_modes(one))
        for one in runs
    ]
    names = ["median", "ci_low", "ci_high", "by_run", "modes"]
    return pd.DataFrame(rows, index=runs.index, columns=names)


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
    runs = [by_round[by_round.index.get_level_values("run") == run] for run in _runs(by_round)]
    tables = [ratios(own).assign(run=run) for run, own in zip(_runs(by_round), runs, strict=True)]
    columns = [*RATIO_COLUMNS, "run"]
    if not tables:
        return pd.DataFrame(columns=columns)
    return pd.concat(tables).sort_values([*RATIO_KEY, "run"], ignore_index=True)[columns]


def _runs(by_round: pd.Series) -> list[str]:
    return [] if by_round.empty else sorted(by_round.index.get_level_values("run").unique())


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
    key = ["machine", "study", "case", "metric"]
    visit = ["run", "round", "visit"]
    fresh = fresh.assign(visit=visits(fresh, studies))
    by_visit = fresh.groupby([*key, "variant", *visit], sort=False)["value"].median()
    by_variant = dict(tuple(by_visit.reset_index().groupby(["study", "variant"], sort=False)))
    pairs = []
    for study in studies.values():
        shown = {pair: study.shown_case(pair[0]).id for pair in rankings(study)}
        for variant, other in [*study.comparisons(), *shown]:
            if not {(study.name, variant.name), (study.name, other.name)} <= set(by_variant):
                continue
            both = by_variant[study.name, variant.name].merge(
                by_variant[study.name, other.name],
                on=[*key, *visit],
                suffixes=("", "_other"),
            )
            if (variant, other) in shown:
                both = both[both["case"] == shown[variant, other]]
            if variant.host_work or other.host_work:
                both = both[both["metric"] != "gpu_time"]
            both["ratio"] = both["value_other"] / both["value"]
            pairs.append(both.rename(columns={"variant_other": "against"}))
    if not pairs or (paired := pd.concat(pairs)).empty:
        return pd.Series(dtype=float)
    by_round: pd.Series = paired.groupby([*RATIO_KEY, "run", "round"])["ratio"].median()
    return by_round


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
