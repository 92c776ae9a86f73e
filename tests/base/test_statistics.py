"""Intervals and verdicts: cases solved by hand, and rates of errors by chance."""

import math

import numpy as np
import pytest

from analysis.base.statistics import (
    COUNT,
    DIFFERENCE,
    MIN_ROUNDS,
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

EXPERIMENTS = 1000
CORRECT = range(927, 971)
"""Quantiles of 0.1 % and 99.9 % of the number of right experiments, each right with CONFIDENCE."""
VERDICTS = {
    "faster": [(1.02, 1.10), (1.001, 1.02)],
    "slower": [(0.90, 0.98), (0.98, 0.999)],
    "same": [(0.995, 1.005), (0.99, 1.01)],
    "unclear": [
        *((0.95, 1.05), (1.0, 1.05), (0.95, 1.005), (math.nan, math.nan)),
        *((1.002, 1.012), (0.988, 0.998)),  # certainly another time, but below the threshold
    ],
}
BY_RUN = {
    "faster": [[1.20, 1.21, 1.19]],
    "slower": [[0.80, 0.81, 0.79]],
    "same": [[1.002, 1.003, 1.0021]],
    "unclear": [
        *([1.20, 1.21, 0.999], [1.20, 1.80, 1.01]),  # one run disagrees; perhaps by chance
        [1.20, 1.20, 1.20, 1.20, 0.99],  # though the interval of the mean excludes 1
        [1.0091, 1.0092, 1.0120],  # less than a hundredth
    ],
}


def test_verdict_needs_the_whole_interval_and_several_runs_must_agree() -> None:
    for expected, intervals in VERDICTS.items():
        for low, high in intervals:
            assert verdict(math.sqrt(low * high), low, high) == expected, (low, high)
        for runs in BY_RUN[expected]:
            assert verdict(*estimate([[one] for one in runs]), runs) == expected, runs


@pytest.mark.parametrize("sigma", [0.003, 0.05])
def test_one_program_against_itself_is_rarely_called_different(sigma: float) -> None:
    random = np.random.default_rng([7, int(sigma * 1e4)])
    times = random.lognormal(0, sigma, (2, EXPERIMENTS, 3))
    times *= np.where(random.random(times.shape) < 0.15, random.uniform(1.5, 10, times.shape), 1)
    verdicts = [verdict(*estimate([row])) for row in (times[0] / times[1]).tolist()]
    assert verdicts.count("faster") + verdicts.count("slower") <= 0.05 * EXPERIMENTS


@pytest.mark.parametrize("runs", [3, 5])
@pytest.mark.parametrize("sigma", [0.002, 0.1, 0.6])
@pytest.mark.parametrize("kind", [TIME, COUNT])
def test_the_next_run_is_where_it_is_expected(runs: int, sigma: float, kind: Kind) -> None:
    random = np.random.default_rng([23, runs, int(sigma * 1000)])
    medians = random.lognormal(-10, sigma, (EXPERIMENTS, runs + 1))
    low, high = np.array([prediction_interval(row, kind) for row in medians[:, :-1].tolist()]).T
    inside = int(np.sum((low <= medians[:, -1]) & (medians[:, -1] <= high)))
    assert inside in CORRECT or (kind is TIME and inside > max(CORRECT))


def test_intervals_of_rounds_and_of_two_runs_are_their_ends() -> None:
    rounds = [float(value) for value in (7, 3, 9, 1, 10, 5, 8, 2, 6, 4)]
    assert median_interval(rounds) == (2.0, 9.0)  # 98 %; from the third to the eighth 89 %
    assert median_interval(rounds[:MIN_ROUNDS]) == (1.0, 10.0)
    low, high = few = median_interval([1.0, 1.1, 1.2])
    assert low < 1.0 and high > 1.2
    assert median_interval([1.0, 1.0, 1.0, 1.0, 9.0])[1] == 9.0  # beyond the mean's interval
    # A run of one round does not hide the interval of another.
    assert estimate([[1.0, 1.1, 1.2], [1.1]]) == pytest.approx((1.1, *few))
    assert estimate([[1.0, 1.1, 1.2], [9.0]]).high == 9.0
    assert estimate([[0.1], [1.0, 1.1, 1.2]]).low == 0.1
    assert np.isnan(estimate([[1.0], [1.1]]).low)
    first, second = [1.0, 1.1, 1.2, 1.1, 1.0, 1.3], [2.0, 2.1, 2.2, 2.1, 2.0, 2.3]
    assert estimate([first, second]) == pytest.approx((1.6, 1.0, 2.3))
    three = estimate([first, second, first])
    assert three.value == pytest.approx(1.1)
    assert three.low < 1.0 and three.high > 2.3  # a plausible range for another run


def test_intervals_of_runs_vary_by_a_hundredth_and_stay_within_what_is_possible() -> None:
    low, high = prediction_interval([2.0, 2.0, 2.0])
    reach = 4.303 * SAME_WITHIN * math.sqrt(4 / 3)
    assert [math.log(high / 2), math.log(2 / low)] == pytest.approx([reach, reach], rel=1e-3)
    assert prediction_interval([2.0, 2.0, 2.0], COUNT) == pytest.approx((2.0, 2.0))
    assert prediction_interval([0.9, 0.5, 0.95], SHARE)[1] == 1.0
    for runs in ([[0.0], [0.0], [2.0]], [[0.0, 1.0, 0.0]]):
        assert estimate(runs).low == 0.0 and estimate(runs).high > 1.0
    assert estimate([[-1.0], [0.0], [2.0]], DIFFERENCE).low < -1.0
    mean = mean_estimate([1.0, 2.0, 4.0])  # geometric
    assert mean.value == pytest.approx(2.0) and mean.low * mean.high == pytest.approx(4.0)
    assert mean_estimate([-1.0, 0.0, 4.0], DIFFERENCE).value == pytest.approx(1.0)
    assert outside_of_others([1.0, 1.01, 0.99, 1.3]) == [False, False, False, True]
    assert outside_of_others([1.0, 1.01, 1.3]) == [False] * 3  # two others predict nothing
    assert outside_of_others([2.0] * 4, COUNT) == [False] * 4
