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
from analysis.results.collect import KEY
from analysis.results.store.runs import WHOLE_TIMES
from analysis.results.tables.medians import (
    VISIT,
    Rounds,
    by_round,
    by_visit,
    chosen_and_fresh,
    medians_of,
    over_runs,
    rounds_by_run,
)
from analysis.results.tables.rows import RatioRow, RepeatabilityRow, RepeatRow, columns, runs_text
from analysis.study import Study, Variant

RATIO_KEY = ["machine", "study", "variant", "against", "case", "metric"]
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

    By RATIO_KEY, run, host and round. Pairs the two variants' medians of one run visit by visit, in
    every run that has fresh samples of both; the ratio of a round is the median of its visits'.
    Where the CPU takes part in either, only host_time compares them.
    """
    times = chosen_and_fresh(samples)
    times = times[times["metric"].isin(WHOLE_TIMES) & (times["metric"] != "submit_time")]
    rows = []
    for study in studies.values():
        shown = {pair: study.shown_case(pair[0]).id for pair in rankings(study)}
        rows += [
            (study.name, a.name, b.name, shown.get((a, b)), a.host_work or b.host_work)
            for a, b in [*study.comparisons(), *shown]
        ]
    compared = pd.DataFrame(rows, columns=["study", "variant", "against", "only", "has_host_work"])
    of = by_visit(times, studies).rename("of").reset_index()
    over = of.rename(columns={"variant": "against", "of": "over"})
    shared = [name for name in VISIT if name != "variant"]
    both = of.merge(compared, on=["study", "variant"]).merge(over, on=["against", *shared])
    both = both[both["only"].isna() | (both["only"] == both["case"])]
    both = both[~both["has_host_work"].astype(bool) | (both["metric"] != "gpu_time")]
    both = both.assign(ratio=both["over"] / both["of"])
    ratios: pd.Series = both.groupby([*RATIO_KEY, "run", "host", "round"])["ratio"].median()
    return ratios


def ratios(rounds: pd.Series) -> pd.DataFrame:
    """Each comparison over all runs of `ratios_by_round`, with the columns of RatioRow."""
    if rounds.empty:
        return pd.DataFrame(columns=columns(RatioRow))
    table = over_runs(rounds.droplevel("host"), RATIO_KEY, lambda _: TIME)
    figures = table[["median", "ci_low", "ci_high", "by_run"]]
    table["verdict"] = [verdict(*figure) for figure in figures.itertuples(index=False, name=None)]
    table["by_run"] = table["by_run"].map(runs_text)
    counts = rounds.reset_index(["run", "host"]).groupby(RATIO_KEY, sort=False)
    table[["runs", "hosts"]] = counts[["run", "host"]].nunique()
    return table.rename(columns={"median": "ratio"}).reset_index()[columns(RatioRow)]


def repeats(samples: pd.DataFrame, rounds: pd.Series, studies: Mapping[str, Study]) -> pd.DataFrame:
    """A row for each two entries of one program and run, with the columns of RepeatRow.

    Between runs, the repeat's time in one run is compared with the prediction interval of the
    original's other runs.
    """
    pairs = rounds.index.to_frame()[["study", "variant", "against"]]
    same = rounds[pd.MultiIndex.from_frame(pairs).isin([*_repeats(studies)])]
    if same.empty:
        return pd.DataFrame(columns=columns(RepeatRow))
    tables = [ratios(of_run).assign(run=run) for run, of_run in same.groupby(level="run")]
    table = pd.concat(tables).sort_values([*RATIO_KEY, "run"], ignore_index=True)
    times = rounds_by_run(by_round(by_visit(chosen_and_fresh(samples), studies), KEY[:-1]))
    between = []
    for row in table.to_dict("records"):
        repeat, original = (
            times[row["machine"], row["study"], row[entry], row["case"], row["metric"]]
            for entry in ("variant", "against")
        )
        others = [of_run for run, of_run in original.items() if run != row["run"]]
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
    samples: pd.DataFrame, rounds: pd.Series, studies: Mapping[str, Study]
) -> pd.DataFrame:
    """A row for each machine and study with more than MIN_RUNS fresh runs, with the columns of
    RepeatabilityRow.

    Each run of each time and ratio is left out in turn, and compared with the interval and the
    verdict of the others.
    """
    good = chosen_and_fresh(samples)
    times = rounds_by_run(by_round(by_visit(good[good["unit"] == "s"], studies), KEY))
    all_ratios = rounds_by_run(rounds.droplevel("host"))
    rows = []
    for key, runs in good.groupby(["machine", "study"])[["run", "host"]]:
        if runs["run"].nunique() <= MIN_RUNS:
            continue
        of_times, of_ratios = (
            {cell: of for cell, of in cells.items() if cell[:2] == key and len(of) > MIN_RUNS}
            for cells in (times, all_ratios)
        )
        are_outside, are_apart = (
            [is_one for of in cells.values() for is_one in outside_of_others(medians_of(of))]
            for cells in (of_times, of_ratios)
        )
        estimates = [estimate([*of.values()]) for of in of_times.values()]
        # A program that no provider refuses spends no time on refused posts.
        widths = [(high - low) / 2 / value for value, low, high in estimates if value]
        widths = [width for width in widths if math.isfinite(width)]
        contradicts = [is_one for of in of_ratios.values() for is_one in _contradicts(of)]
        on_repeats = [
            verdict(median(medians_of(of)), math.nan, math.nan, medians_of(of))
            for cell, of in of_ratios.items()
            if cell[1:4] in _repeats(studies)
        ]
        rows.append(
            {
                **dict(zip(["machine", "study"], key, strict=True)),
                **runs.nunique().rename({"run": "runs", "host": "hosts"}),
                "times": len(are_outside),
                "times_inside": are_outside.count(False),
                "half_width": median(widths) if widths else math.nan,
                "ratios": len(are_apart),
                "ratios_inside": are_apart.count(False),
                "decided": len(contradicts),
                "contradicted": sum(contradicts),
                "repeats": len(on_repeats),
                "repeats_different": sum(one in OPPOSITE for one in on_repeats),
            }
        )
    return pd.DataFrame(rows, columns=columns(RepeatabilityRow))


def _contradicts(runs: Rounds) -> Iterator[bool]:
    """For each run whose others decide a comparison, whether its rounds decide the opposite."""
    medians = medians_of(runs)
    for index, (one, rounds) in enumerate(zip(medians, runs.values(), strict=True)):
        others = [*medians[:index], *medians[index + 1 :]]
        by_others = verdict(median(others), math.nan, math.nan, others)
        if by_others in OPPOSITE:
            yield verdict(one, *median_interval(rounds)) == OPPOSITE[by_others]
