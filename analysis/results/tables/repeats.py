"""build/repeats.csv: two entries that are one program, within a run and between runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.base.statistics import MIN_RUNS, estimate, verdict
from analysis.results.collect import CELL, chosen, fresh
from analysis.results.tables.ratios import ratios_by_run
from analysis.results.tables.rows import RepeatRow, columns
from analysis.results.tables.summary import rounds_by_run
from analysis.study import Study

REPEAT_COLUMNS: Final = columns(RepeatRow)
UNKNOWN: Final = (math.nan, "")
FIGURE: Final = [*CELL, "metric"]


def repeat_table(
    samples: pd.DataFrame, compared: pd.Series, studies: Mapping[str, Study]
) -> pd.DataFrame:
    """A row for each repeat and run, in REPEAT_COLUMNS.

    `compared` are the `ratios_by_round` of `samples`. Between runs, the repeat's time in one run is
    compared with the prediction interval of the original's other runs.
    """
    if compared.empty:
        return pd.DataFrame(columns=REPEAT_COLUMNS)
    pairs = compared.index.to_frame(index=False)
    same = ratios_by_run(compared[_are_repeats(pairs, studies)])
    rounds = fresh(chosen(samples)).groupby([*FIGURE, "run", "round"])["value"].median()
    times = rounds_by_run(rounds)
    rows = []
    for _, row in same.iterrows():
        repeat, original = (
            times[row["machine"], row["study"], row[entry], row["case"], row["metric"]]
            for entry in ("variant", "against")
        )
        others = [rounds for run, rounds in original.items() if run != row["run"]]
        rows.append(_between(float(median(repeat[row["run"]])), others))
    found = pd.DataFrame(rows, index=same.index, columns=["between_ratio", "between_verdict"])
    return same.join(found)[REPEAT_COLUMNS]


def repeats(compared: pd.DataFrame, studies: Mapping[str, Study]) -> pd.DataFrame:
    """The rows of `ratios_by_run` that compare two entries of the same program."""
    return compared[_are_repeats(compared, studies)]


def _are_repeats(compared: pd.DataFrame, studies: Mapping[str, Study]) -> npt.NDArray[np.bool_]:
    """Whether `variant` and `against` of each row are the same program."""
    same = {
        (study.name, variant.name, variant.after)
        for study in studies.values()
        for variant in study.variants
        if study.is_repeat(variant)
    }
    pairs = pd.MultiIndex.from_frame(compared[["study", "variant", "against"]])
    return pairs.isin(list(same))


def _between(time: float, others: list[list[float]]) -> tuple[float, str]:
    """Ratio of the original's median over other runs to `time`, and the verdict on its interval."""
    if len(others) < MIN_RUNS:
        return UNKNOWN
    ratio, low, high = (bound / time for bound in estimate(others))
    return ratio, verdict(ratio, low, high)
