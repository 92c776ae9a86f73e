"""build/summary.csv, build/ratios.csv and build/skipped.csv from the samples of every machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from analysis.statistics import median_intervals, verdict
from analysis.store.collect import KEY, chosen, visits
from analysis.study import Study, Variant
from analysis.tables.rows import RatioRow, RunRow, SkippedRow, SummaryRow, columns

SUMMARY_COLUMNS = columns(SummaryRow)
RATIO_KEY = ["machine", "study", "variant", "against", "case", "metric"]
RATIO_COLUMNS = columns(RatioRow)
RUN_COLUMNS = columns(RunRow)
SKIPPED_COLUMNS = columns(SkippedRow)


def summarise(samples: pd.DataFrame) -> pd.DataFrame:
    """One row per machine, study, variant, case and metric, in SUMMARY_COLUMNS.

    `median` is the median over rounds of each round's median; its interval resamples rounds.
    `verified` is 1 if every sample is verified. `throttled` is the share of samples taken while the
    GPU reported a throttle reason.
    """
    measured = chosen(samples)
    measured = measured[measured["status"] == "ok"]
    if measured.empty:
        return pd.DataFrame(columns=SUMMARY_COLUMNS)
    by_round = measured.groupby([*KEY, "round"], sort=False)["value"].median()
    series = by_round.groupby(KEY, sort=False).agg(list)
    table = measured.groupby(KEY, sort=False).agg(
        q1=("value", lambda values: values.quantile(0.25)),
        q3=("value", lambda values: values.quantile(0.75)),
        n=("value", "size"),
        rounds=("round", "nunique"),
        verified=("verified", "min"),
        throttled=("throttle", lambda reasons: (reasons != "").mean()),
        stale=("stale", "max"),
    )
    table[["median", "ci_low", "ci_high"]] = _intervals(series)
    table["stale"] = table["stale"].astype(int)
    return table.reset_index()[SUMMARY_COLUMNS].sort_values(KEY, ignore_index=True)


def _intervals(series: pd.Series) -> pd.DataFrame:
    """median, ci_low and ci_high of lists of one value per round. Lists of equal length are
    processed together."""
    result = pd.DataFrame(np.nan, index=series.index, columns=["median", "ci_low", "ci_high"])
    for _, group in series.groupby(series.map(len)):
        medians, low, high = median_intervals(np.array(group.tolist(), dtype=float))
        result.loc[group.index] = np.column_stack([medians, low, high])
    return result


def comparisons(study: Study) -> Iterator[tuple[Variant, Variant]]:
    """Pairs (variant, other) to compare: with the variant's `after`, and, unless it is itself a
    reference or ceiling, with all references and ceilings."""
    for variant in study.variants:
        against = [study.variant(variant.after)] if variant.after else []
        if variant.role in ("step", "beyond"):
            against += study.with_role("reference", "ceiling")
        yield from ((variant, other) for other in dict.fromkeys(against) if other != variant)


def ratios(compared: pd.DataFrame) -> pd.DataFrame:
    """The newest run of each comparison in `ratios_by_run`, in RATIO_COLUMNS."""
    newest = compared.groupby(RATIO_KEY, sort=False)["run"].transform("max")
    return compared[compared["run"] == newest][RATIO_COLUMNS].reset_index(drop=True)


def ratios_by_run(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """Speed-ups: the other's time over the variant's, above 1 if the variant is faster.

    Returns RATIO_COLUMNS and `run`. Pairs the medians of the two variants visit by visit, in every
    run that has fresh samples of both. The ratio of a round is the median of its visits' ratios. If
    the CPU takes part in either variant, gpu_time is not compared.
    """
    fresh = samples[(samples["status"] == "ok") & ~samples["stale"].astype(bool)]
    fresh = fresh[fresh["metric"].isin(["gpu_time", "host_time", "op_time"])]
    if fresh.empty:
        return pd.DataFrame(columns=[*RATIO_COLUMNS, "run"])
    key = ["machine", "study", "case", "metric"]
    visit = ["run", "round", "visit"]
    fresh = fresh.assign(visit=visits(fresh, studies))
    by_visit = fresh.groupby([*key, "variant", *visit], sort=False)["value"].median()
    by_variant = dict(tuple(by_visit.reset_index().groupby(["study", "variant"], sort=False)))
    pairs = []
    for study in studies.values():
        for variant, other in comparisons(study):
            if not {(study.name, variant.name), (study.name, other.name)} <= set(by_variant):
                continue
            both = by_variant[study.name, variant.name].merge(
                by_variant[study.name, other.name],
                on=[*key, *visit],
                suffixes=("", "_other"),
            )
            if variant.host_work or other.host_work:
                both = both[both["metric"] != "gpu_time"]
            both["ratio"] = both["value_other"] / both["value"]
            pairs.append(both.rename(columns={"variant_other": "against"}))
    if not pairs or (paired := pd.concat(pairs)).empty:
        return pd.DataFrame(columns=[*RATIO_COLUMNS, "run"])
    by_round = paired.groupby([*RATIO_KEY, "run", "round"], sort=False)["ratio"].median()
    series = by_round.groupby([*RATIO_KEY, "run"], sort=False).agg(list)
    table = _intervals(series).rename(columns={"median": "ratio"})
    table["verdict"] = [verdict(*ends) for ends in table[["ci_low", "ci_high"]].to_numpy()]
    ordered = table.reset_index().sort_values([*RATIO_KEY, "run"], ignore_index=True)
    return ordered[[*RATIO_COLUMNS, "run"]]


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
    """The run that the summary uses for each variant and case, in RUN_COLUMNS."""
    table = chosen(samples)
    return table.drop_duplicates(RUN_COLUMNS).reindex(columns=RUN_COLUMNS)


def skipped(samples: pd.DataFrame) -> pd.DataFrame:
    """Cases without a measurement, with the reason, in SKIPPED_COLUMNS."""
    table = chosen(samples)
    if table.empty:
        return pd.DataFrame(columns=SKIPPED_COLUMNS)
    table = table[table["status"] != "ok"].drop_duplicates(["machine", "study", "variant", "case"])
    table["stale"] = table["stale"].astype(int)
    return table[SKIPPED_COLUMNS].reset_index(drop=True)
