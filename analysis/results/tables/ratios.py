"""build/ratios.csv: how many times as fast one variant is as another, paired within each run.

build/repeats.csv: two entries that are one program. build/repeatability.csv: each run of a machine
against the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from statistics import median

import pandas as pd

from analysis.base import statistics
from analysis.base.statistics import MIN_RUNS, TIME, outside_of_others, verdict
from analysis.results.collect import KEY
from analysis.results.store.runs import WHOLE_TIMES
from analysis.results.tables import summary
from analysis.results.tables.rows import runs_text, table_of
from analysis.results.tables.summary import VISIT, Rounds, by_visit, medians_of, rounds_by_run
from analysis.study import Study, Variant

RATIO_KEY = ["machine", "study", "variant", "against", "case", "metric"]
OPPOSITE = {"faster": "slower", "slower": "faster"}


def comparisons(studies: Mapping[str, Study]) -> pd.DataFrame:
    """The pairs to compare: those of each study, and in the variant's shown case, `only`, every
    step with all before it."""
    pairs: list[tuple[str, Variant, Variant, str | None]] = []
    for study in studies.values():
        compared = list(study.comparisons())
        pairs += [(study.name, a, b, None) for a, b in compared]
        steps = [step for step in study.with_role("step", "beyond") if not study.is_repeat(step)]
        for index, step in enumerate(steps):
            others = [other for other in steps[:index] if (step, other) not in compared]
            pairs += [(study.name, step, other, study.shown_case(step).id) for other in others]
    table = [(name, a.name, b.name, only, a.host_work or b.host_work) for name, a, b, only in pairs]
    return pd.DataFrame(table, columns=["study", "variant", "against", "only", "has_host_work"])


def ratios_by_round(used: pd.DataFrame, studies: Mapping[str, Study]) -> pd.Series:
    """Speed-ups: the other's time over the variant's, above 1 where the variant is faster.

    By RATIO_KEY, run, host and round. Pairs the two variants' medians of one run visit by visit, in
    every run with fresh `chosen` samples of both; the ratio of a round is the median of its
    visits'. Where the CPU takes part in either, only host_time compares them.
    """
    times = summary.fresh(used)
    times = times[times["metric"].isin(WHOLE_TIMES) & (times["metric"] != "submit_time")]
    of = by_visit(times, studies).rename("of").reset_index()
    over = of.rename(columns={"variant": "against", "of": "over"})
    shared = [name for name in VISIT if name != "variant"]
    both = of.merge(comparisons(studies), on=["study", "variant"])
    both = both.merge(over, on=["against", *shared])
    both = both[both["only"].isna() | (both["only"] == both["case"])]
    both = both[~both["has_host_work"].astype(bool) | (both["metric"] != "gpu_time")]
    both = both.assign(ratio=both["over"] / both["of"])
    ratios: pd.Series = both.groupby([*RATIO_KEY, "run", "host", "round"])["ratio"].median()
    return ratios


def ratio_table(rounds: pd.Series, key: list[str] = RATIO_KEY) -> pd.DataFrame:
    """Each comparison over all runs of `ratios_by_round`, a row for each `key`."""
    if rounds.empty:
        return table_of("repeats")
    table = summary.over_runs(rounds, key, lambda _: TIME)
    figures = zip(*(table[name] for name in ("median", "ci_low", "ci_high", "by_run")), strict=True)
    table["verdict"] = [verdict(*figure) for figure in figures]
    table["by_run"] = table["by_run"].map(runs_text)
    return table.rename(columns={"median": "ratio"}).reset_index()


def repeat_table(rounds: pd.Series, studies: Mapping[str, Study]) -> pd.DataFrame:
    """A row for each two entries of one program and run."""
    pairs = rounds.index.to_frame()[["study", "variant", "against"]]
    same = rounds[pd.MultiIndex.from_frame(pairs).isin([*_repeats(studies)])]
    return ratio_table(same, [*RATIO_KEY, "run"])


def _repeats(studies: Mapping[str, Study]) -> set[tuple[str, ...]]:
    """Study, repeat and original of each two entries of one program."""
    return {
        (study.name, variant.name, str(variant.after))
        for study in studies.values()
        for variant in study.variants
        if study.is_repeat(variant)
    }


def repeatability_table(
    used: pd.DataFrame, rounds: pd.Series, studies: Mapping[str, Study]
) -> pd.DataFrame:
    """A row for each machine and study with more than MIN_RUNS fresh runs.

    Each run of each time and ratio is left out in turn, and compared with the interval and the
    verdict of the others.
    """
    good = summary.fresh(used)
    times = rounds_by_run(by_visit(good[good["unit"] == "s"], studies), KEY)
    ratios = rounds_by_run(rounds, RATIO_KEY)
    repeats, table = _repeats(studies), []
    for place, runs in good.groupby(["machine", "study"])[["run", "host"]]:
        if runs["run"].nunique() <= MIN_RUNS:
            continue
        of_times, of_ratios = (
            {key: of for key, of in cells.items() if key[:2] == place and len(of) > MIN_RUNS}
            for cells in (times, ratios)
        )
        times_outside, ratios_outside = (
            [is_one for of in cells.values() for is_one in outside_of_others(medians_of(of))]
            for cells in (of_times, of_ratios)
        )
        estimates = [statistics.estimate([*of.values()]) for of in of_times.values()]
        # A program that no provider refuses spends no time on refused posts.
        widths = [(high - low) / 2 / value for value, low, high in estimates if value]
        contradicts = [is_one for of in of_ratios.values() for is_one in _contradicts(of)]
        same = [medians_of(of) for key, of in of_ratios.items() if key[1:4] in repeats]
        row = (
            *(*place, *runs.nunique()),
            *(len(times_outside), times_outside.count(False), median(widths or [math.nan])),
            *(len(ratios_outside), ratios_outside.count(False)),
            *(len(contradicts), sum(contradicts)),
            *(len(same), sum(_by_runs(medians) in OPPOSITE for medians in same)),
        )
        table.append(row)
    return table_of("repeatability", table)


def _by_runs(medians: list[float]) -> str:
    """The verdict of three runs or more."""
    return verdict(median(medians), math.nan, math.nan, medians)


def _contradicts(runs: Rounds) -> Iterator[bool]:
    """For each run whose others decide a comparison, whether its rounds decide the opposite."""
    medians = medians_of(runs)
    for index, (ratio, rounds) in enumerate(zip(medians, runs.values(), strict=True)):
        by_others = _by_runs([*medians[:index], *medians[index + 1 :]])
        if by_others in OPPOSITE:
            yield verdict(ratio, *statistics.median_interval(rounds)) == OPPOSITE[by_others]
