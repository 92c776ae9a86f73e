"""The model of one way: its accuracy on machines whose times are known, and its form."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from kernels.transfers.cost import Timing, borrow, fit_cost
from tests.kernels.transfers.machines import (
    FEW_CELLS,
    WAYS,
    TrueTime,
    batch,
    gather,
    grid,
    jobs,
    loop,
    timings,
)

CLIFF = 24_576


def errors(seconds: TrueTime, cells: list[tuple[int, int]], noise: float) -> list[float]:
    """Relative errors of predictions off the grid, the largest last."""
    cost = fit_cost(timings(seconds, cells, noise), CLIFF if seconds is batch else 0)
    found = [
        abs(cost.seconds(job.size, job.count) / seconds(job.size, job.count) - 1)
        for job in jobs(seed=5)
    ]
    return sorted(found)


@pytest.mark.parametrize("name", WAYS)
def test_nine_of_ten_predictions_off_the_grid_are_within_a_twentieth(name: str) -> None:
    found = errors(WAYS[name], grid(), noise=0.02)
    assert found[int(0.9 * len(found))] < 0.05
    assert found[-1] < 0.15


@pytest.mark.parametrize("name", WAYS)
def test_few_cells_are_enough_for_a_tenth(name: str) -> None:
    found = errors(WAYS[name], list(FEW_CELLS), noise=0.02)
    assert found[int(0.9 * len(found))] < 0.1


def test_planted_latency_and_rate_are_found() -> None:
    cost = fit_cost(timings(lambda size, count: 1e-5 + count * size / 5e10, grid(), 0.001))
    assert cost.latency_s == pytest.approx(1e-5, rel=0.02)
    for size, seconds in zip(cost.sizes, cost.piece_s, strict=True):
        assert seconds == pytest.approx(size / 5e10, rel=0.05)


def test_measured_cells_are_met() -> None:
    known = timings(loop, grid(), noise=0.1)
    cost = fit_cost(known)
    for one in known:
        assert cost.is_measured(one.size, one.count)
        assert cost.seconds(one.size, one.count) == pytest.approx(one.seconds, rel=1e-4)
    assert not cost.is_measured(600, 16)


def test_a_larger_piece_never_costs_less_than_a_smaller_one() -> None:
    cost = fit_cost(timings(gather, grid(), noise=0.2))
    assert list(cost.piece_s) == sorted(cost.piece_s)
    pieces = [cost._piece(size) for size in range(100, 300_000, 700)]
    assert all(one <= other for one, other in pairwise(pieces))


def test_pieces_beyond_the_cliff_share_no_cost_with_smaller_ones() -> None:
    cost = fit_cost(timings(batch, grid(), noise=0.0), CLIFF)
    assert cost.seconds(CLIFF, 1000) == pytest.approx(batch(CLIFF, 1000), rel=0.02)
    assert cost.seconds(CLIFF + 32, 1000) == pytest.approx(batch(CLIFF + 32, 1000), rel=0.05)


def test_the_error_grows_with_the_misfit() -> None:
    exact, noisy = (fit_cost(timings(loop, grid(), noise)).error for noise in (0.0, 0.2))
    assert exact == pytest.approx(0.02)
    assert noisy > 0.1


def test_a_situation_with_few_cells_borrows_from_one_with_many() -> None:
    """Twice the time everywhere: three cells give the factor, and the donor the rest."""
    here = timings(lambda s, n: 2 * gather(s, n), [(4096, 256), (4096, 4096), (16_384, 256)], 0.0)
    donor = timings(gather, grid(), 0.0)
    cost = fit_cost(here, 0, borrow(here, donor, 0))
    for job in jobs(seed=6):
        expected = 2 * gather(job.size, job.count)
        assert cost.seconds(job.size, job.count) == pytest.approx(expected, rel=0.1)
    assert cost.is_measured(4096, 256) and not cost.is_measured(65_536, 256)
    assert borrow(here, [], 0) == ()


def test_nothing_beyond_the_cliff_scales_what_is_borrowed() -> None:
    here = timings(lambda s, n: batch(s, n) / 4, [(4096, 256), (16_384, 4096)], 0.0)
    lent = borrow(here, timings(batch, grid(), 0.0), CLIFF)
    for one in lent:
        scale = 0.25 if one.size <= CLIFF else 1.0
        assert one.seconds == pytest.approx(scale * batch(one.size, one.count), rel=0.05)


def test_one_cell_is_enough_for_an_answer() -> None:
    cost = fit_cost([Timing(4096, 16, 1e-3)])
    assert cost.seconds(4096, 16) == pytest.approx(1e-3, rel=1e-4)
    assert math.isfinite(cost.seconds(1, 1)) and cost.seconds(2**30, 16) > 1e-3
    with pytest.raises(ValueError, match="expected at least one cell"):
        fit_cost([])
