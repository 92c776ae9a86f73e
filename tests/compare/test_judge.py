"""Verdicts on rows: known effects, false alarms of a whole table, and what to run next."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from analysis.compare.judge import holm, judge
from analysis.compare.side import Row, Run, run_of

MARGIN = 0.01


def table(
    slower: Sequence[float], runs: int, noise: float = 0.002, seed: int = 0
) -> dict[Row, tuple[list[Run], list[Run]]]:
    """A row for each of `slower`, the share by which B takes longer."""
    draw = np.random.default_rng(seed)

    def side(factor: float) -> list[Run]:
        of_runs = factor * np.exp(noise * draw.standard_normal(runs))
        return [run_of(1e-4 * one * np.exp(noise * draw.standard_normal(16))) for one in of_runs]

    return {(f"row{n}",): (side(1), side(1 + share)) for n, share in enumerate(slower)}


def verdicts(judged: pd.DataFrame) -> dict[str, str]:
    words = judged["verdict"].where(judged["direction"] == "", judged["direction"])
    return dict(zip(judged["row"].str[0], words, strict=True))


@pytest.mark.parametrize("runs", [1, 3])
def test_a_clear_difference_has_its_verdict_and_comes_first(runs: int) -> None:
    judged = judge(table([0.1, -0.3, *[0] * 18], runs), MARGIN)
    found = verdicts(judged)
    assert (found["row0"], found["row1"]) == ("slower", "faster")
    assert not {"slower", "faster"} & {found[f"row{n}"] for n in range(2, 20)}
    sizes = np.abs(np.log(judged["ratio"]))
    assert sizes.is_monotonic_decreasing and judged["row"].iloc[0] == ("row1",)


def test_a_difference_below_the_margin_is_not_slower_and_none_is_not_equality() -> None:
    for slower, margin, noise in (([0] * 20, MARGIN, 1e-3), ([0.02] * 10, 0.05, 1e-5)):
        found = judge(table(slower, 5, noise), margin)
        assert set(verdicts(found).values()) == {"equal"}
    # The margin is 5 % by default.
    assert verdicts(judge(table([0.03, 0.08], 5, 1e-4))) == {"row0": "equal", "row1": "slower"}
    for unclear in (table([0] * 20, 3, 0.1), table([0.05], 1)):
        assert {*judge(unclear, MARGIN)["verdict"]} == {"undecided"}


@pytest.mark.parametrize("runs", [1, 3])
def test_at_most_one_table_in_twenty_has_a_false_alarm(runs: int) -> None:
    tables = [judge(table([0] * 20, runs, noise=0.01, seed=s), MARGIN) for s in range(40)]
    wrong = sum(bool({"slower", "faster"} & set(verdicts(one).values())) for one in tables)
    assert wrong <= 3
    assert holm(np.array([0.04, 0.01, 0.03])) == pytest.approx([0.06, 0.03, 0.06])


def test_runs_that_all_moved_together_are_no_regression_without_repeats() -> None:
    """Another host or clock may have caused it."""
    found = verdicts(judge(table([0.1] * 10, 1), MARGIN))
    assert "slower" not in found.values()
    assert "slower" in verdicts(judge(table([0.1] * 20, 4), MARGIN)).values()


def test_blocks_see_the_drift_of_samples() -> None:
    noise = np.random.default_rng(0).standard_normal(800) * 0.01
    drifting = run_of(np.exp(noise + np.linspace(0, 0.05, 800)))
    assert drifting.spread > 5 * run_of(np.exp(noise)).spread
    assert math.isnan(run_of([1.0]).spread)
