"""Times at the speed of their host, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from analysis.results.host_speed import (
    NEIGHBOURS,
    at_host_speed,
    host_factors,
    intervals_of_times,
)

from analysis.base.statistics import CONFIDENCE, SAME_WITHIN, student
from analysis.results.collect import KEY

ROUNDS = 3
Seconds = Callable[[int, int, int], float]
"""The time of a cell, in a run and a round."""


def measured(cells: int, runs: int, seconds: Seconds, metric: str = "op_time") -> pd.DataFrame:
    """Times of `cells` variants, one after the other in every round; as `times_by_round`."""
    rows = [
        (
            *("box", "calls", f"v{cell:02}", "n=1", metric, "s", f"run {run}", number),
            *(seconds(cell, run, number), f"2026-01-01T00:{number:02}:{cell:02}Z"),
        )
        for cell in range(cells)
        for run in range(runs)
        for number in range(ROUNDS)
    ]
    index = [*KEY, "run", "round"]
    return pd.DataFrame(rows, columns=[*index, "value", "started_at"]).set_index(index)


def made(times: np.ndarray) -> Seconds:
    """A function that returns `times` [cells, runs, rounds]."""
    return lambda cell, run, number: float(times[cell, run, number])


def figures(by_round: pd.DataFrame) -> pd.DataFrame:
    by_run = by_round["value"].groupby([*KEY, "run"]).median().groupby(KEY)
    return pd.DataFrame({"median": by_run.median(), "runs": by_run.size()})


def intervals(by_round: pd.DataFrame) -> pd.DataFrame:
    return intervals_of_times(by_round, figures(by_round))


def test_a_host_that_is_slower_for_a_while_is_seen_by_the_times_beside() -> None:
    def seconds(cell: int, run: int, number: int) -> float:
        return (1 + cell) * (1.8 if run == 2 and number < 2 and cell >= 20 else 1.0)

    by_round = measured(40, 4, seconds)
    factors = host_factors(by_round, figures(by_round)["median"]).unstack(["run", "round"])
    slow = factors["run 2"][0].to_numpy()
    assert slow[: 20 - NEIGHBOURS] == pytest.approx(1)
    assert slow[20 + NEIGHBOURS :] == pytest.approx(1.8)
    assert factors.drop(columns="run 2", level="run").to_numpy() == pytest.approx(1)
    found = at_host_speed(by_round, figures(by_round)["median"])
    last = found.xs("v39", level="variant")
    assert last["median"].to_numpy() == pytest.approx(40)
    assert last["factor"].to_numpy() == pytest.approx([1, 1, 1.8, 1])


def test_a_time_says_nothing_of_its_own_host() -> None:
    by_round = measured(20, 4, lambda cell, run, number: 3.0 if (cell, run) == (7, 1) else 1.0)
    found = intervals(by_round).xs("v07", level="variant").iloc[0]
    assert found["host_factors"] == pytest.approx([1, 1, 1, 1])
    assert found["ci_high"] > 3


def test_device_times_and_others_do_not_look_at_each_other() -> None:
    device = measured(10, 3, lambda cell, run, number: 1.0, "gpu_time")
    host = measured(10, 3, lambda cell, run, number: 2.0**run, "host_time")
    found = intervals(pd.concat([device, host]))["host_factors"]
    assert set(map(tuple, found.xs("gpu_time", level="metric"))) == {(1, 1, 1)}
    assert found.xs("host_time", level="metric").iloc[0] == pytest.approx([0.5, 1, 2])


@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_with_few_neighbours_the_interval_is_that_of_the_runs(spread: float) -> None:
    moves = [-1, 0, 1]
    by_round = measured(
        NEIGHBOURS, 3, lambda cell, run, number: math.exp(spread * moves[run] * (cell == 0))
    )
    found = intervals(by_round)
    assert set(map(tuple, found["host_factors"])) == {(1, 1, 1)}
    # Four of the five cells do not vary, but one is never taken for better than it was.
    reach = student(2) * math.sqrt((spread**2 + SAME_WITHIN**2) * (1 + 1 / 3))
    assert found["ci_high"].iloc[0] == pytest.approx(math.exp(reach))
    assert found["ci_low"].iloc[0] == pytest.approx(math.exp(-reach))


def test_runs_that_agree_by_chance_are_taken_for_as_varied_as_the_study() -> None:
    moves = [-1, 0, 1]
    by_round = measured(
        NEIGHBOURS, 3, lambda cell, run, number: math.exp(0.1 * moves[run] * (cell > 0))
    )
    reach = student(2) * math.sqrt((0.1**2 + SAME_WITHIN**2) * (1 + 1 / 3))
    assert intervals(by_round)["ci_high"].to_numpy() == pytest.approx(math.exp(reach))


def test_only_positive_times_of_enough_runs_have_one() -> None:
    by_round = measured(10, 3, lambda cell, run, number: 0.0 if (cell, run) == (4, 0) else 1.0)
    assert "v04" not in intervals(by_round).index.get_level_values("variant")
    assert len(intervals(by_round)) == 9
    assert intervals(measured(10, 2, lambda cell, run, number: 1.0)).empty


@pytest.mark.parametrize("hosts", [pytest.param(0.02, marks=pytest.mark.long), 0.3])
@pytest.mark.parametrize("moments", [pytest.param(0.0, marks=pytest.mark.long), 0.3])
def test_the_next_run_is_inside_and_the_interval_does_not_widen_with_the_hosts(
    hosts: float, moments: float
) -> None:
    random = np.random.default_rng([41, int(hosts * 100), int(moments * 100)])
    cells, runs, inside, widths = 40, 5, [], []
    for _ in range(25):
        of_run = random.normal(0, hosts, runs)
        of_moment = random.normal(0, moments, (runs, ROUNDS, cells // 10))
        rest = random.normal(0, 0.05, (cells, runs, ROUNDS))

        slower = rest + of_run[:, None] + np.repeat(of_moment, 10, axis=2).transpose(2, 0, 1)
        by_round = measured(cells, runs, made(np.exp(slower)))
        is_held = by_round.index.get_level_values("run") == f"run {runs - 1}"
        kept = by_round[~is_held]
        found = intervals(kept)
        held = at_host_speed(by_round[is_held], figures(kept)["median"])["median"]
        held = held.droplevel("run").reindex(found.index)
        inside.append(((found["ci_low"] <= held) & (held <= found["ci_high"])).mean())
        widths.append(float((found["ci_high"] / found["ci_low"]).map(math.log).median()) / 2)
    assert np.mean(inside) >= CONFIDENCE - 0.01
    assert np.median(widths) < (0.25 if moments == 0 else 0.6)
