"""build/ratios.csv: how many times as fast one variant is as another, paired within each run.

build/repeats.csv: two entries that are one program. build/repeatability.csv: each run of a machine
against the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import median

import pandas as pd

from analysis.base.statistics import (
    MIN_RUNS,
    TIME,
    estimate,
    median_interval,
    outside_of_others,
    verdict,
)
from analysis.results.collect import CELL, chosen, fresh, visits
from analysis.results.tables.rows import (
    RatioRow,
    RepeatabilityRow,
    RepeatRow,
    columns,
    runs_text,
)
from analysis.results.tables.summary import Rounds, medians_by_round, over_runs, rounds_by_run
from analysis.study import Study, Variant

RATIO_KEY = ["machine", "study", "variant", "against", "case", "metric"]
VISIT = ["machine", "case", "metric", "run", "round", "host", "visit"]
OPPOSITE = {"faster": "slower", "slower": "faster"}


def rankings(study: Study) -> Iterator[tuple[Variant, Variant]]:
    """Further pairs (variant, other) to compare in the variant's shown case, so that every step is
    with all before it."""
    compared = set(study.comparisons())
    steps = [step for step in study.with_role("step", "beyond") if not study.is_repeat(step)]
    for index, step in enumerate(steps):
        yield from ((step, other) for other in steps[:index] if (step, other) not in compared)


def ratios_by_round(samples: pd.DataFrame, studies: Mapping[str, Study]) -> pd.Series:
    """Speed-ups: the other's time over the variant's, above 1 where the variant is faster.

    By RATIO_KEY, run, round and host. Pairs the two variants' medians of one run visit by visit, in
    every run that has fresh samples of both; the ratio of a round is the median of its visits'.
    Where the CPU takes part in either, only host_time compares them.
    """
    times = fresh(chosen(samples))
    times = times[times["metric"].isin(["gpu_time", "host_time", "op_time"])]
    times = times.assign(visit=visits(times, studies))
    by_visit = times.groupby(["study", "variant", *VISIT], sort=False)["value"].median()
    rows = []
    for study in studies.values():
        shown = {pair: study.shown_case(pair[0]).id for pair in rankings(study)}
        rows += [
            (study.name, a.name, b.name, shown.get((a, b)), a.host_work or b.host_work)
            for a, b in [*study.comparisons(), *shown]
        ]
    compared = pd.DataFrame(rows, columns=["study", "variant", "against", "only", "has_host_work"])
    side = by_visit.reset_index()
    other = side.rename(columns={"variant": "against", "value": "other"})
    both = side.merge(compared, on=["study", "variant"]).merge(
        other, on=["study", "against", *VISIT]
    )
    both = both[both["only"].isna() | (both["only"] == both["case"])]
    both = both[~both["has_host_work"].astype(bool) | (both["metric"] != "gpu_time")]
    both = both.assign(ratio=both["other"] / both["value"])
    by_round: pd.Series = both.groupby([*RATIO_KEY, "run", "round", "host"])["ratio"].median()
    return by_round


def ratios(by_round: pd.Series) -> pd.DataFrame:
    """Each comparison over all runs of `ratios_by_round`, with the columns of RatioRow."""
    if by_round.empty:
        return pd.DataFrame(columns=columns(RatioRow))
    counts = by_round.reset_index(["run", "host"]).groupby(RATIO_KEY, sort=False)
    table = over_runs(by_round.droplevel("host"), RATIO_KEY, lambda _: TIME)
    estimates = table[["median", "ci_low", "ci_high", "by_run"]]
    table["verdict"] = [verdict(*row) for row in estimates.itertuples(index=False, name=None)]
    table[["runs", "hosts"]] = counts[["run", "host"]].nunique()
    table["by_run"] = table["by_run"].map(runs_text)
    return table.rename(columns={"median": "ratio"}).reset_index()[columns(RatioRow)]


def repeats(
    samples: pd.DataFrame, by_round: pd.Series, studies: Mapping[str, Study]
) -> pd.DataFrame:
    """A row for each two entries of one program and run, with the columns of RepeatRow.

    Between runs, the repeat's time in one run is compared with the prediction interval of the
    original's other runs.
    """
    pairs = by_round.index.to_frame()[["study", "variant", "against"]]
    same = by_round[pd.MultiIndex.from_frame(pairs).isin([*_repeats(studies)])]
    if same.empty:
        return pd.DataFrame(columns=columns(RepeatRow))
    tables = [ratios(of_run).assign(run=run) for run, of_run in same.groupby(level="run")]
    table = pd.concat(tables).sort_values([*RATIO_KEY, "run"], ignore_index=True)
    figure = [*CELL, "metric"]
    times = rounds_by_run(
        fresh(chosen(samples)).groupby([*figure, "run", "round"])["value"].median()
    )
    between = []
    for row in table.to_dict("records"):
        repeat, original = (
            times[row["machine"], row["study"], row[entry], row["case"], row["metric"]]
            for entry in ("variant", "against")
        )
        others = [rounds for run, rounds in original.items() if run != row["run"]]
        if len(others) < MIN_RUNS:
            between.append((math.nan, ""))
            continue
        ratio, low, high = (end / median(repeat[row["run"]]) for end in estimate(others))
        between.append((ratio, verdict(ratio, low, high)))
    names = ["between_ratio", "between_verdict"]
    return table.join(pd.DataFrame(between, columns=names))[columns(RepeatRow)]


def _repeats(studies: Mapping[str, Study]) -> set[tuple[str, str, str | None]]:
    """Study, repeat and original of each two entries of one program."""
    return {
        (study.name, variant.name, variant.after)
        for study in studies.values()
        for variant in study.variants
        if study.is_repeat(variant)
    }


def repeatability(
    samples: pd.DataFrame, by_round: pd.Series, studies: Mapping[str, Study]
) -> pd.DataFrame:
    """A row for each machine and study with more than MIN_RUNS fresh runs, with the columns of
    RepeatabilityRow.

    Each run of each time and ratio is left out in turn, and compared with the interval and the
    verdict of the others.
    """
    good = fresh(chosen(samples))
    of_times = rounds_by_run(medians_by_round(good[good["unit"] == "s"], studies))
    of_ratios = rounds_by_run(by_round.droplevel("host"))
    rows = []
    for key, runs in good.groupby(["machine", "study"])[["run", "host"]]:
        if runs["run"].nunique() <= MIN_RUNS:
            continue
        times, ratios = (
            {cell: of for cell, of in cells.items() if cell[:2] == key and len(of) > MIN_RUNS}
            for cells in (of_times, of_ratios)
        )
        is_outside = [outside_of_others(_medians(of_time)) for of_time in times.values()]
        estimates = [estimate([*of_time.values()]) for of_time in times.values()]
        # A program that no provider refuses spends no time on refused posts.
        widths = [(high - low) / 2 / value for value, low, high in estimates if value]
        widths = [width for width in widths if math.isfinite(width)]
        is_apart = [outside_of_others(_medians(of_ratio)) for of_ratio in ratios.values()]
        contradicts = [one for of_ratio in ratios.values() for one in _contradicts(of_ratio)]
        on_repeats = [
            verdict(median(_medians(of_ratio)), math.nan, math.nan, _medians(of_ratio))
            for cell, of_ratio in ratios.items()
            if cell[1:4] in _repeats(studies)
        ]
        rows.append(
            {
                **dict(zip(["machine", "study"], key, strict=True)),
                **runs.nunique().rename({"run": "runs", "host": "hosts"}),
                "times": sum(map(len, is_outside)),
                "times_inside": sum(one.count(False) for one in is_outside),
                "half_width": median(widths) if widths else math.nan,
                "ratios": sum(map(len, is_apart)),
                "ratios_inside": sum(one.count(False) for one in is_apart),
                "decided": len(contradicts),
                "contradicted": sum(contradicts),
                "repeats": len(on_repeats),
                "repeats_different": sum(one in OPPOSITE for one in on_repeats),
            }
        )
    return pd.DataFrame(rows, columns=columns(RepeatabilityRow))


def _medians(runs: Rounds) -> list[float]:
    return [median(rounds) for rounds in runs.values()]


def _contradicts(runs: Rounds) -> Iterator[bool]:
    """For each run whose others decide a comparison, whether its rounds decide the opposite."""
    medians = _medians(runs)
    for index, (one, rounds) in enumerate(zip(medians, runs.values(), strict=True)):
        others = [*medians[:index], *medians[index + 1 :]]
        by_others = verdict(median(others), math.nan, math.nan, others)
        if by_others in OPPOSITE:
            yield verdict(one, *median_interval(rounds)) == OPPOSITE[by_others]
