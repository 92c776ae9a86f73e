"""Intervals and verdicts: right by hand, and how often wrong by chance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.config import load_config
from analysis.statistics import expanded_confidence, median_intervals, verdict


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
        (math.nan, math.nan, "unclear"),
        (1.5, math.nan, "unclear"),
    ],
)
def test_a_verdict_is_what_the_whole_interval_says(low: float, high: float, said: str) -> None:
    assert verdict(low, high) == said


# How often the method is wrong, over many made-up experiments of a default grid's rounds.

ROUNDS = load_config().grid.rounds
EXPERIMENTS = 1000


def noise(random: np.random.Generator, sigma: float, outliers: float) -> np.ndarray:
    """Times around 1 of many experiments [EXPERIMENTS, ROUNDS]; some rounds go grossly wrong."""
    times = random.lognormal(0, sigma, (EXPERIMENTS, ROUNDS))
    wrong = random.random(times.shape) < outliers
    return np.where(wrong, times * random.uniform(1.5, 10, times.shape), times)


def verdicts(speed_ups: np.ndarray) -> list[str]:
    _, low, high = median_intervals(speed_ups)
    return [verdict(*ends) for ends in zip(low, high, strict=True)]


@pytest.mark.parametrize("outliers", [0.0, 0.15])
@pytest.mark.parametrize("sigma", [0.003, 0.01, 0.05])
def test_one_program_against_itself_is_rarely_called_different(
    sigma: float, outliers: float
) -> None:
    random = np.random.default_rng([7, int(sigma * 1e4), int(outliers * 100)])
    said = verdicts(noise(random, sigma, outliers) / noise(random, sigma, outliers))
    assert said.count("faster") + said.count("slower") <= 0.05 * EXPERIMENTS
    if sigma == 0.003 and not outliers:
        assert said.count("same") >= 0.95 * EXPERIMENTS


@pytest.mark.parametrize(("speed_up", "right"), [(1.1, "faster"), (1 / 1.1, "slower")])
def test_a_tenth_more_speed_is_found_in_noise_of_a_hundredth(speed_up: float, right: str) -> None:
    random = np.random.default_rng(11)
    said = verdicts(speed_up * noise(random, 0.01, 0) / noise(random, 0.01, 0))
    assert said.count(right) >= 0.95 * EXPERIMENTS


def test_outliers_in_a_round_do_not_turn_a_verdict_round() -> None:
    random = np.random.default_rng(13)
    said = verdicts(1.1 * noise(random, 0.01, 0.15) / noise(random, 0.01, 0.15))
    assert said.count("slower") <= 0.01 * EXPERIMENTS


@pytest.mark.parametrize("outliers", [0.0, 0.15])
@pytest.mark.parametrize("count", [8, 10, 16])
def test_a_medians_interval_holds_the_true_median(count: int, outliers: float) -> None:
    random = np.random.default_rng([17, count])
    times = random.lognormal(0, 0.05, (EXPERIMENTS, count))
    # An outlier as often below as above leaves the true median at 1.
    wrong = random.random(times.shape) < outliers
    times = np.where(wrong, times * random.choice([0.2, 5.0], times.shape), times)
    medians, low, high = median_intervals(times)
    assert np.mean((low <= 1) & (high >= 1)) >= 0.93
    assert np.all((low <= medians) & (medians <= high))


def test_an_interval_is_the_same_whenever_it_is_computed() -> None:
    times = np.random.default_rng(19).lognormal(0, 0.05, (3, ROUNDS))
    first, again = median_intervals(times), median_intervals(times)
    assert all(np.array_equal(*ends) for ends in zip(first, again, strict=True))


def test_few_rounds_widen_the_percentiles() -> None:
    levels = [expanded_confidence(count) for count in (3, 5, 10, 30, 1000)]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == pytest.approx(0.95, abs=0.001)
    assert max(levels) < 1
