"""Times corrected for the speed of their host, and their prediction interval for another run.

A host is slower while others use its cores or memory, for seconds or for a whole run. This slows
all times measured at that moment. Each time is therefore divided by the slowdown of the times
beside it, as sequencing counts are divided by size factors (Anders and Huber, "Differential
expression analysis for sequence count data", 2010).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from analysis.base.statistics import MIN_RUNS, SAME_WITHIN, student
from analysis.results.collect import KEY

NEIGHBOURS: Final = 5
"""Number of visits before a time, and after it, that show the speed of its host."""
DEVICE_TIME: Final = "gpu_time"
INTERVAL_COLUMNS: Final = ["ci_low", "ci_high", "any_low", "any_high", "host_factors"]
_ROUND: Final = ["machine", "study", "is_device", "run", "round"]
_VISIT: Final = [*_ROUND, "started_at", "variant", "case"]


def host_factors(by_round: pd.DataFrame, usual: pd.Series) -> pd.Series:
    """Factor by which the visits next to each time were slower than `usual`, by KEY, run and round.

    `by_round` has `value` and `started_at`; `usual` has figures by KEY, only of those that count.
    Visits to other cells of the same study and round count, in the order of time; device times and
    others apart. The factor is 1 with fewer than NEIGHBOURS of them, and for a time of 0.
    """
    known = by_round.join(usual.rename("usual"), on=KEY)
    known = known[(known["value"] > 0) & (known["usual"] > 0)]
    known = known.assign(slower=np.log(known["value"] / known["usual"])).reset_index()
    if known.empty:
        return pd.Series(1.0, by_round.index)
    known["is_device"] = known["metric"] == DEVICE_TIME
    visits = known.groupby(_VISIT)["slower"].median()
    beside = visits.groupby(level=_ROUND).transform(_of_neighbours)
    found = known.join(np.exp(beside.rename("factor")), on=_VISIT)
    return found.set_index(by_round.index.names)["factor"].reindex(by_round.index, fill_value=1.0)


def _of_neighbours(slower: pd.Series) -> npt.NDArray[np.float64]:
    """The median of the neighbours of each of the visits, which are in the order of time."""
    if len(slower) <= NEIGHBOURS:
        return np.zeros(len(slower))
    padded = np.pad(slower.to_numpy(), NEIGHBOURS, constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * NEIGHBOURS + 1)
    found: npt.NDArray[np.float64] = np.nanmedian(np.delete(windows, NEIGHBOURS, axis=1), axis=1)
    return found


def at_host_speed(by_round: pd.DataFrame, usual: pd.Series) -> pd.DataFrame:
    """The `median` over rounds of each run's times, each over its factor, and the median `factor`;
    by KEY and run."""
    factors = host_factors(by_round, usual)
    rounds = pd.DataFrame({"median": by_round["value"] / factors, "factor": factors})
    return rounds.groupby([*KEY, "run"]).median()


def intervals_of_times(by_round: pd.DataFrame, figures: pd.DataFrame) -> pd.DataFrame:
    """INTERVAL_COLUMNS, by KEY, of every positive time that has MIN_RUNS runs or more.

    `figures` has `median` and `runs` by KEY. `ci_low` and `ci_high` are for another run at the
    speed of its host, `any_low` and `any_high` for one on any host. `host_factors` are the factors
    of the runs, oldest first.
    """
    is_time = figures.index.get_level_values("unit") == "s"
    is_positive = (by_round["value"] > 0).groupby(KEY).all().reindex(figures.index)
    has_enough = is_time & is_positive & (figures["runs"] >= MIN_RUNS)
    usual = figures.loc[has_enough, "median"]
    if usual.empty:
        return pd.DataFrame(columns=INTERVAL_COLUMNS, index=figures.index[:0])
    keys = by_round.reset_index(["run", "round"]).index
    by_round = by_round[keys.isin(usual.index)]
    at_host = at_host_speed(by_round, usual)
    on_any = by_round["value"].groupby([*KEY, "run"]).median()
    found = _prediction(at_host["median"], usual).join(
        _prediction(on_any, usual).set_axis(INTERVAL_COLUMNS[2:4], axis=1)
    )
    return found.assign(host_factors=at_host["factor"].groupby(KEY).agg(list))


def _prediction(by_run: pd.Series, figures: pd.Series) -> pd.DataFrame:
    """The prediction interval of the logarithms of the times of the runs, by KEY.

    The times of a study have the same runs, so their variances err together. None is taken for less
    than the median of the study, plus that of times which count as the same.
    """
    logs = np.log(by_run).groupby(KEY).agg(["mean", "var", "size"])
    names = [logs.index.get_level_values(name) for name in ("machine", "study", "metric")]
    typical = logs["var"].groupby([*names[:2], names[2] == DEVICE_TIME]).transform("median")
    variance = np.maximum(logs["var"], typical) + SAME_WITHIN**2
    quantile = logs["size"].map(lambda runs: student(runs - 1))
    reach = quantile * np.sqrt(variance * (1 + 1 / logs["size"]))
    figure = figures.reindex(logs.index)
    return pd.DataFrame(
        {
            "ci_low": np.minimum(np.exp(logs["mean"] - reach), figure),
            "ci_high": np.maximum(np.exp(logs["mean"] + reach), figure),
        }
    )
