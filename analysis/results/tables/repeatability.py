"""build/repeatability.csv: would another run confirm the figures? Each run of a machine against
what the others say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from statistics import median
from typing import Final, NamedTuple

import pandas as pd

from analysis.base.statistics import (
    MIN_RUNS,
    TIME,
    estimate,
    median_interval,
    outside_of_others,
    verdict,
)
from analysis.results.collect import KEY, chosen, fresh
from analysis.results.tables.ratios import RATIO_KEY
from analysis.results.tables.rows import RepeatabilityRow, columns
from analysis.results.tables.summary import medians_by_round, rounds_by_run
from analysis.study import Study

REPEATABILITY_COLUMNS: Final = columns(RepeatabilityRow)
OPPOSITE: Final = {"faster": "slower", "slower": "faster"}

Rounds = Mapping[str, list[float]]
"""Medians of the rounds of each run, oldest first."""


class _Ratio(NamedTuple):
    """Counts of one comparison, over its left-out runs."""

    left_out: int
    inside: int
    decided: int
    contradicted: int


def repeatability(
    samples: pd.DataFrame, ratios_by_round: pd.Series, studies: Mapping[str, Study]
) -> pd.DataFrame:
    """A row a machine and study with more than MIN_RUNS fresh runs, in REPEATABILITY_COLUMNS.

    Each run of each time and ratio is left out in turn, and compared with what the others predict
    and decide.
    """
    good = fresh(chosen(samples))
    times = good[good["unit"] == "s"]
    if times.empty:
        return pd.DataFrame(columns=REPEATABILITY_COLUMNS)
    by_study = good.groupby(["machine", "study"])
    of_times = rounds_by_run(medians_by_round(times, studies))
    of_ratios = rounds_by_run(ratios_by_round.droplevel("host"))
    rows = (
        _row(key, of_study, _of(of_times, KEY, key), _of(of_ratios, RATIO_KEY, key), studies)
        for (machine, study), of_study in by_study[["run", "host"]]
        for key in [(str(machine), str(study))]
        if of_study["run"].nunique() > MIN_RUNS
    )
    return pd.DataFrame(map(asdict, rows), columns=REPEATABILITY_COLUMNS)


def _of(
    cells: Mapping[tuple[str, ...], Rounds], names: list[str], key: tuple[str, str]
) -> dict[tuple[str, ...], Rounds]:
    """The cells of a machine and study that have enough runs."""
    places = [names.index(name) for name in ("machine", "study")]
    return {
        cell: runs
        for cell, runs in cells.items()
        if tuple(cell[place] for place in places) == key and len(runs) > MIN_RUNS
    }


def _row(
    key: tuple[str, str],
    runs: pd.DataFrame,
    times: Mapping[tuple[str, ...], Rounds],
    ratios: Mapping[tuple[str, ...], Rounds],
    studies: Mapping[str, Study],
) -> RepeatabilityRow:
    machine, study = key
    is_outside = [outside_of_others(_medians(of_time)) for of_time in times.values()]
    # A program that no provider refuses spends no time on refused posts.
    widths = [width for width in map(_half_width, times.values()) if math.isfinite(width)]
    compared = list(map(_compared, ratios.values()))
    same = list(_verdicts_on_repeats(ratios, studies[study]))
    return RepeatabilityRow(
        machine=machine,
        study=study,
        runs=runs["run"].nunique(),
        hosts=runs["host"].nunique(),
        times=sum(map(len, is_outside)),
        times_inside=sum(one.count(False) for one in is_outside),
        half_width=median(widths) if widths else math.nan,
        ratios=sum(one.left_out for one in compared),
        ratios_inside=sum(one.inside for one in compared),
        decided=sum(one.decided for one in compared),
        contradicted=sum(one.contradicted for one in compared),
        repeats=len(same),
        repeats_different=sum(one in OPPOSITE for one in same),
    )


def _medians(runs: Rounds) -> list[float]:
    return list(map(median, runs.values()))


def _half_width(runs: Rounds) -> float:
    """Half the width of a figure's interval, as a share of the figure; NaN for a figure of 0."""
    value, low, high = estimate(list(runs.values()))
    return (high - low) / 2 / value if value else math.nan


def _compared(runs: Rounds) -> _Ratio:
    medians, rounds = _medians(runs), list(runs.values())
    decided = contradicted = 0
    for index, one in enumerate(medians):
        others = [*medians[:index], *medians[index + 1 :]]
        by_others = verdict(median(others), *estimate([[other] for other in others])[1:], others)
        if by_others in OPPOSITE:
            decided += 1
            own = verdict(one, *median_interval(rounds[index]))
            contradicted += own == OPPOSITE[by_others]
    is_outside = outside_of_others(medians, TIME)
    return _Ratio(len(medians), is_outside.count(False), decided, contradicted)


def _verdicts_on_repeats(ratios: Mapping[tuple[str, ...], Rounds], study: Study) -> Iterator[str]:
    """The verdict of all runs on each comparison of one program with itself."""
    same = {(one.name, one.after) for one in study.variants if study.is_repeat(one)}
    variant, against = RATIO_KEY.index("variant"), RATIO_KEY.index("against")
    for cell, runs in ratios.items():
        if (cell[variant], cell[against]) in same:
            medians = _medians(runs)
            value, low, high = estimate(list(runs.values()))
            yield verdict(value, low, high, medians)
