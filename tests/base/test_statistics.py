"""Intervals and verdicts: cases solved by hand, and rates of errors by chance."""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
import pytest

from analysis.base.reading import read_yaml
from analysis.base.statistics import (
    CONFIDENCE,
    COUNT,
    DIFFERENCE,
    MIN_ROUNDS,
    MIN_RUNS,
    SAME_WITHIN,
    SHARE,
    TIME,
    Kind,
    estimate,
    mean_estimate,
    median_interval,
    outside_of_others,
    prediction_interval,
    verdict,
)
from analysis.study.config import CONFIG_FILE


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.02, 1.10, "faster"),
        (1.001, 1.02, "faster"),
        (0.90, 0.98, "slower"),
        (0.98, 0.999, "slower"),
        (0.995, 1.005, "same"),
        (1.001, 1.005, "same"),
        (0.99, 1.01, "same"),
        (0.95, 1.05, "unclear"),
        (1.0, 1.05, "unclear"),
        (0.95, 1.0, "unclear"),
        (0.95, 1.005, "unclear"),
        (1.002, 1.012, "unclear"),  # certainly faster, but below the threshold
        (0.988, 0.998, "unclear"),
        (math.nan, math.nan, "unclear"),
        (1.5, math.nan, "unclear"),
    ],
)
def test_verdict_needs_the_whole_interval(low: float, high: float, said: str) -> None:
    assert verdict(math.sqrt(low * high), low, high) == said


@pytest.mark.parametrize(
    ("by_run", "said"),
    [
        ([1.20, 1.21, 1.19], "faster"),
        ([0.80, 0.81, 0.79], "slower"),
        ([1.20, 1.21, 0.999], "unclear"),  # one run disagrees
        ([1.20, 1.80, 1.01], "unclear"),  # all agree, but perhaps by chance
        ([1.20, 1.20, 1.20, 1.20, 0.99], "unclear"),  # though the interval of the mean excludes 1
        ([0.80, 0.80, 0.80, 0.80, 1.005], "unclear"),
        ([1.002, 1.003, 1.0021], "same"),
        ([1.0091, 1.0092, 1.0120], "unclear"),  # less than a hundredth
    ],
)
def test_several_runs_must_agree(by_run: list[float], said: str) -> None:
    ratio, low, high = estimate([[one] for one in by_run])
    assert verdict(ratio, low, high, by_run) == said


# Rate of wrong verdicts over many made-up experiments with the rounds of a default grid.

ROUNDS: int = read_yaml(CONFIG_FILE)["grids"]["default"]["rounds"]
EXPERIMENTS = 1000


def binomial_quantile(probability: float) -> int:
    """Quantile of the number of correct experiments, if each is correct with CONFIDENCE."""
    wrong = 1 - CONFIDENCE
    chances = (
        math.comb(EXPERIMENTS, right) * CONFIDENCE**right * wrong ** (EXPERIMENTS - right)
        for right in range(EXPERIMENTS + 1)
    )
    cumulative = accumulate(chances)
    return next(right for right, chance in enumerate(cumulative) if chance >= probability)


MIN_CORRECT, MAX_CORRECT = binomial_quantile(0.001), binomial_quantile(0.999)
"""Bounds on the number of correct intervals at CONFIDENCE; one test in a thousand exceeds them."""


def noise(random: np.random.Generator, sigma: float, outliers: float) -> np.ndarray:
    """Times around 1 of many experiments [EXPERIMENTS, ROUNDS]; some rounds are outliers."""
    times = random.lognormal(0, sigma, (EXPERIMENTS, ROUNDS))
    wrong = random.random(times.shape) < outliers
    return np.where(wrong, times * random.uniform(1.5, 10, times.shape), times)


@pytest.mark.parametrize("outliers", [0.0, 0.15])
@pytest.mark.parametrize("sigma", [0.003, 0.01, 0.05])
def test_one_program_against_itself_is_rarely_called_different(
    sigma: float, outliers: float
) -> None:
    random = np.random.default_rng([7, int(sigma * 1e4), int(outliers * 100)])
    speed_ups = noise(random, sigma, outliers) / noise(random, sigma, outliers)
    said = [verdict(*estimate([row])) for row in speed_ups.tolist()]
    assert said.count("faster") + said.count("slower") <= 0.05 * EXPERIMENTS


def test_a_run_of_one_round_does_not_hide_the_interval_of_another() -> None:
    rounds = [1.0, 1.1, 1.2]
    low, high = median_interval(rounds)
    assert estimate([rounds, [1.1]]) == pytest.approx((1.1, low, high))
    assert estimate([rounds, [9.0]]).high == 9.0 and estimate([[0.1], rounds]).low == 0.1
    assert np.isnan(estimate([[1.0], [1.1]]).low)


def test_a_medians_interval_is_two_of_its_rounds() -> None:
    rounds = [float(value) for value in (7, 3, 9, 1, 10, 5, 8, 2, 6, 4)]
    assert median_interval(rounds) == (2.0, 9.0)  # 98 %; from the third to the eighth 89 %
    assert median_interval(rounds[:MIN_ROUNDS]) == (1.0, 10.0)
    low, high = median_interval([1.0, 1.1, 1.2])
    assert low < 1.0 and high > 1.2
    _, outlier = median_interval([1.0, 1.0, 1.0, 1.0, 9.0])
    assert outlier == 9.0  # beyond the interval of the mean


@pytest.mark.parametrize("runs", [3, 4, 5])
@pytest.mark.parametrize("sigma", [0.002, 0.1, 0.6])
@pytest.mark.parametrize("kind", [TIME, COUNT])
def test_the_next_run_is_where_it_is_expected(runs: int, sigma: float, kind: Kind) -> None:
    random = np.random.default_rng([23, runs, int(sigma * 1000)])
    medians = random.lognormal(-10, sigma, (EXPERIMENTS, runs + 1))
    low, high = np.array([prediction_interval(row, kind) for row in medians[:, :-1].tolist()]).T
    inside = int(np.sum((low <= medians[:, -1]) & (medians[:, -1] <= high)))
    assert inside >= MIN_CORRECT
    if kind is COUNT:
        assert inside <= MAX_CORRECT


def test_times_that_agree_by_chance_are_taken_to_vary_by_a_hundredth() -> None:
    low, high = prediction_interval([2.0, 2.0, 2.0])
    reach = 4.303 * SAME_WITHIN * math.sqrt(4 / 3)
    assert math.log(high / 2) == pytest.approx(reach, rel=1e-3)
    assert math.log(2 / low) == pytest.approx(reach, rel=1e-3)
    assert prediction_interval([2.0, 2.0, 2.0], COUNT) == pytest.approx((2.0, 2.0))


def test_a_run_outside_the_interval_of_three_others_is_marked() -> None:
    assert outside_of_others([1.0, 1.01, 0.99, 1.3]) == [False, False, False, True]
    assert outside_of_others([1.0, 1.01, 1.3]) == [False] * 3  # two others predict nothing
    assert outside_of_others([2.0] * 4, COUNT) == [False] * 4


def test_figure_of_two_runs_is_that_of_both_and_its_interval_reaches_over_both() -> None:
    first, second = [1.0, 1.1, 1.2, 1.1, 1.0, 1.3], [2.0, 2.1, 2.2, 2.1, 2.0, 2.3]
    assert estimate([first, second]) == pytest.approx((1.6, 1.0, 2.3))
    assert estimate([second, first]) == estimate([first, second])
    three = estimate([first, second, first])
    assert three.value == pytest.approx(1.1)
    assert three.low < 1.0 and three.high > 2.3  # a plausible range for another run
    assert len([first, second]) < MIN_RUNS


def test_no_interval_leaves_what_is_possible() -> None:
    assert prediction_interval([0.9, 0.5, 0.95], SHARE)[1] == 1.0
    assert prediction_interval([0.0, 0.0, 2.0], TIME)[0] == 0.0
    for runs in ([[0.0], [0.0], [2.0]], [[0.0, 1.0, 0.0]]):
        found = estimate(runs)
        assert found.low == 0.0 and found.high > 1.0
    assert estimate([[-1.0], [0.0], [2.0]], DIFFERENCE).low < -1.0


def test_mean_of_positive_values_is_geometric() -> None:
    found = mean_estimate([1.0, 2.0, 4.0])
    assert found.value == pytest.approx(2.0)
    assert found.low * found.high == pytest.approx(4.0)
    assert mean_estimate([-1.0, 0.0, 4.0], DIFFERENCE).value == pytest.approx(1.0)
