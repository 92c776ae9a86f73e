"""build/ratios.csv: how many times as fast one variant is as another, paired within each run.

build/repeats.csv: two entries that are one program. build/repeatability.csv: each run of a machine
against the others.
"""

import math
from collections.abc import Iterator, Mapping
from statistics import median

import pandas as pd

from analysis.base import statistics
from analysis.base.statistics import MIN_RUNS, TIME, verdict
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
        compared = {(a.name, b.name): (study.name, a, b, None) for a, b in study.comparisons()}
        pairs += compared.values()
        steps = [step for step in study.with_role("step", "beyond") if not study.is_repeat(step)]
        for index, step in enumerate(steps):
            others = [one for one in steps[:index] if (step.name, one.name) not in compared]
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
    used: pd.DataFrame,
    summarised: pd.DataFrame,
    ratios: pd.DataFrame,
    rounds: pd.Series,
    studies: Mapping[str, Study],
) -> pd.DataFrame:
    """A row for each machine and study with more than MIN_RUNS fresh runs, from the tables of
    `summarise` and of `ratio_table`, which is that of all `rounds`.

    Each run of each time and ratio is left out in turn, and compared with the interval and the
    verdict of the others.
    """
    place, several = ["machine", "study"], f"runs > {MIN_RUNS}"
    table = summary.fresh(used).groupby(place)[["run", "host"]].nunique()
    table = table.set_axis(["runs", "hosts"], axis=1).query(several)
    times = summarised.query(f"{several} and unit == 's' and stale == 0")
    of_times = {"times": times["runs"], "times_inside": times["runs"] - times["apart"]}
    width = (times["ci_high"] - times["ci_low"]) / 2 / times["median"]
    # A program that no provider refuses spends no time on refused posts.
    widths = width[times["median"] != 0].groupby([times[name] for name in place]).median()
    contradicts = [[*_contradicts(runs)] for runs in rounds_by_run(rounds, RATIO_KEY).values()]
    is_repeat = pd.MultiIndex.from_frame(ratios[RATIO_KEY[1:4]]).isin([*_repeats(studies)])
    of_ratios = {
        "ratios": ratios["runs"],
        "ratios_inside": ratios["runs"] - ratios["apart"],
        "decided": [*map(len, contradicts)],
        "contradicted": [*map(sum, contradicts)],
        "repeats": is_repeat,
        "repeats_different": is_repeat & ratios["verdict"].isin(OPPOSITE),
    }
    sums = [
        rows.assign(**figures).query(several).groupby(place)[[*figures]].sum()
        for rows, figures in ((times, of_times), (ratios, of_ratios))
    ]
    counts = pd.concat(sums, axis=1).reindex(table.index).fillna(0).astype(int)
    return table.join(counts).assign(half_width=widths).reset_index()


def _contradicts(runs: Rounds) -> Iterator[bool]:
    """For each run whose others decide a comparison, whether its rounds decide the opposite."""
    medians = medians_of(runs)
    for index, (ratio, rounds) in enumerate(zip(medians, runs.values(), strict=True)):
        others = [*medians[:index], *medians[index + 1 :]]
        by_others = verdict(median(others), math.nan, math.nan, others) if others else ""
        if by_others in OPPOSITE:
            yield verdict(ratio, *statistics.median_interval(rounds)) == OPPOSITE[by_others]
