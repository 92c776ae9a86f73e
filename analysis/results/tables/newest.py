"""Splits off one run of each study on a machine, such as the newest."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from analysis.base.statistics import MIN_RUNS


class Apart(NamedTuple):
    """Fresh samples of the studies with enough runs: those `kept`, and those of the run that is
    `held` out, by study `held_runs`; `runs` are all runs of each of these studies, oldest first."""

    runs: pd.Series
    held_runs: pd.Series
    kept: pd.DataFrame
    held: pd.DataFrame


def newest_apart(samples: pd.DataFrame, newer: int = 0) -> Apart:
    """Splits the samples of one machine. The held run of a study is the newest, or the one with
    `newer` runs after it. Studies without it, or with at most MIN_RUNS fresh runs, are left
    out."""
    fresh = samples[~samples["stale"].astype(bool)]
    runs = fresh.groupby("study")["run"].agg(lambda of_study: sorted(set(of_study)))
    enough = runs[runs.map(len) > max(MIN_RUNS, newer)]
    held = enough.map(lambda of_study: of_study[-1 - newer])
    fresh = fresh[fresh["study"].isin(enough.index)]
    is_held = fresh["run"] == fresh["study"].map(held)
    return Apart(enough, held, fresh[~is_held], fresh[is_held])
