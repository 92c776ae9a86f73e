"""build/ratios.csv: how many times as fast one variant is as another, paired within each run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from analysis.base.statistics import TIME, verdict
from analysis.results.collect import chosen, fresh, visits
from analysis.results.tables.rows import RatioRow, columns, runs_text
from analysis.results.tables.summary import over_runs
from analysis.study import Study, Variant

RATIO_KEY = ["machine", "study", "variant", "against", "case", "metric"]
RATIO_COLUMNS = columns(RatioRow)
VISIT = ["machine", "case", "metric", "run", "round", "host", "visit"]


def rankings(study: Study) -> Iterator[tuple[Variant, Variant]]:
    """Further pairs (variant, other) to compare in the variant's shown case, so that every step is
    with all before it."""
    compared = set(study.comparisons())
    steps = [step for step in study.with_role("step", "beyond") if not study.is_repeat(step)]
    for index, step in enumerate(steps):
        yield from ((step, other) for other in steps[:index] if (step, other) not in compared)


def ratios(by_round: pd.Series) -> pd.DataFrame:
    """Each comparison over all runs of `ratios_by_round`, in RATIO_COLUMNS."""
    if by_round.empty:
        return pd.DataFrame(columns=RATIO_COLUMNS)
    hosts = by_round.reset_index("host").groupby(RATIO_KEY, sort=False)["host"].nunique()
    table = over_runs(by_round.droplevel("host"), RATIO_KEY, lambda _: TIME)
    estimates = table[["median", "ci_low", "ci_high", "by_run"]]
    table["verdict"] = [verdict(*row) for row in estimates.itertuples(index=False, name=None)]
    table["hosts"] = hosts
    table["runs"] = table["by_run"].map(len)
    table["by_run"] = table["by_run"].map(runs_text)
    return table.rename(columns={"median": "ratio"}).reset_index()[RATIO_COLUMNS]


def ratios_by_run(by_round: pd.Series) -> pd.DataFrame:
    """Each comparison in each run by itself: RATIO_COLUMNS and `run`."""
    columns = [*RATIO_COLUMNS, "run"]
    if by_round.empty:
        return pd.DataFrame(columns=columns)
    tables = [ratios(of_run).assign(run=run) for run, of_run in by_round.groupby(level="run")]
    return pd.concat(tables).sort_values([*RATIO_KEY, "run"], ignore_index=True)[columns]


def ratios_by_round(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.Series:
    """Speed-ups: the other's time over the variant's, above 1 where the variant is faster.

    By RATIO_KEY, run, round and host. Pairs the two variants' medians of one run visit by visit, in
    every run that has fresh samples of both; the ratio of a round is the median of its visits'.
    Where the CPU takes part in either, only host_time compares them.
    """
    times = fresh(chosen(samples))
    times = times[times["metric"].isin(["gpu_time", "host_time", "op_time"])]
    if times.empty:
        return pd.Series(dtype=float)
    times = times.assign(visit=visits(times, studies))
    by_visit = times.groupby(["study", "variant", *VISIT], sort=False)["value"].median()
    pairs = [_paired(study, by_visit) for study in studies.values()]
    of_round = pd.concat(pairs).groupby([*RATIO_KEY, "run", "round", "host"])["ratio"]
    by_round: pd.Series = of_round.median()
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
    times = by_visit.reset_index()
    times = times[times["study"] == study.name]
    other = times.rename(columns={"variant": "against", "value": "other"})
    both = times.merge(compared, on="variant").merge(other, on=["study", "against", *VISIT])
    both = both[both["only"].isna() | (both["only"] == both["case"])]
    both = both[~both["has_host_work"].astype(bool) | (both["metric"] != "gpu_time")]
    return both.assign(ratio=both["other"] / both["value"])
