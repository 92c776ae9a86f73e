"""Splits off the newest run of each study on a machine."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from analysis.base.statistics import MIN_RUNS


class Apart(NamedTuple):
    """Fresh samples of the studies with enough runs: those `kept`, and those of the newest run,
    which is `held` out; `runs` are all runs of each of these studies, oldest first."""

    runs: pd.Series
    kept: pd.DataFrame
    held: pd.DataFrame


def newest_apart(samples: pd.DataFrame) -> Apart:
    """Splits the samples of one machine. Studies with at most MIN_RUNS fresh runs are left
    out."""
    fresh = samples[~samples["stale"].astype(bool)]
    runs = fresh.groupby("study")["run"].agg(lambda of_study: sorted(set(of_study)))
    enough = runs[runs.map(len) > MIN_RUNS]
    fresh = fresh[fresh["study"].isin(enough.index)]
    is_newest = fresh["run"] == fresh["study"].map(enough.map(lambda of_study: of_study[-1]))
    return Apart(enough, fresh[~is_newest], fresh[is_newest])
