"""Distinction of rounds in several groups from rounds that scatter."""

from __future__ import annotations

import numpy as np
import pytest
from analysis.results.modes import count_groups, count_modes

SLOW, FAST = [7.0, 7.1, 6.9], [1.2, 1.21, 1.25, 1.22]


@pytest.mark.parametrize(
    ("runs", "modes"),
    [
        ([FAST + SLOW], 2),
        ([FAST + SLOW + [40.0, 41.0, 42.0]], 3),
        ([[*FAST, SLOW[0]], [*FAST, SLOW[1]], [*FAST, SLOW[2]]], 2),
        ([[*FAST, *SLOW[:2]]], 1),  # two rounds may occur by chance
        ([FAST, SLOW], 1),  # hosts that differ
        ([[1.0, 1.01, 1.02, 1.4, 1.41, 1.42]], 1),  # too near
        ([[1.0, 1.5, 2.2, 3.5, 5.0, 7.5]], 1),  # scattered, without a gap
        ([[1.0] * 4], 1),
        ([[0.0] * 3 + [9.0] * 3], 1),
        ([[2.0]], 1),
    ],
)
def test_modes_are_groups_with_a_gap_between(runs: list[list[float]], modes: int) -> None:
    assert count_modes(runs) == modes


@pytest.mark.parametrize(
    ("by_run", "groups"),
    [
        ([996e-6, 1006e-6, 15e-6], 2),
        ([1.0, 10.0, 1.1, 100.0], 3),
        ([1.0, 1.4, 1.9, 2.7], 1),  # scattered, without a gap
        ([1.0, 1.5], 1),
        ([-1.0, 9.0], 1),
        ([], 1),
    ],
)
def test_runs_fall_into_groups_where_neighbours_differ(by_run: list[float], groups: int) -> None:
    assert count_groups(by_run) == groups


@pytest.mark.parametrize("noise", [0.02, 0.1, 0.2])
@pytest.mark.parametrize("shape", [[10], [5] * 4, [10, 5, 5, 5, 5]])
@pytest.mark.parametrize("is_skewed", [False, True])
def test_noise_has_one_mode(noise: float, shape: list[int], is_skewed: bool) -> None:
    """At most one cell in a hundred is found to have several modes."""
    source = np.random.default_rng(0)

    def drawn(count: int) -> list[float]:
        steps = source.exponential(size=count) if is_skewed else source.normal(size=count)
        return [float(value) for value in np.exp(noise * steps)]

    cells = [[drawn(count) for count in shape] for _ in range(300)]
    assert sum(count_modes(cell) > 1 for cell in cells) <= 3
