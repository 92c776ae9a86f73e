"""The fitted line: latency and bandwidth, with intervals that contain the true values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.transfers.line import fit_line

SIZES = np.array([1, 65536, 2**20, 2**24, 2**26], dtype=float)


@given(latency=st.floats(1e-6, 1e-4), bandwidth=st.floats(1e9, 1e11))
def test_an_exact_line_is_found(latency: float, bandwidth: float) -> None:
    line = fit_line(SIZES, latency + SIZES / bandwidth)
    assert line is not None
    assert line.latency.value == pytest.approx(latency, rel=1e-4)
    assert line.bandwidth.value == pytest.approx(bandwidth, rel=1e-4)
    assert line.half_size.value == pytest.approx(latency * bandwidth, rel=1e-4)
    assert line.misfit < 1e-4


def test_intervals_contain_the_true_value_as_often_as_stated() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(300):
        line = fit_line(SIZES, (8e-6 + SIZES / 5e10) * rng.lognormal(0, 0.02, len(SIZES)))
        assert line is not None
        held += line.latency.low <= 8e-6 <= line.latency.high
    assert 0.88 < held / 300 < 0.99


def test_nonlinear_data_have_a_misfit_and_wide_intervals() -> None:
    bent = fit_line(SIZES, np.where(SIZES < 2**20, 5e-6, 40e-6 + SIZES / 5e9))
    assert bent is not None
    assert bent.misfit > 0.3
    assert bent.latency.high / bent.latency.low > 2


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_misfit_is_one_to_either_side(factor: float) -> None:
    seconds = 8e-6 + SIZES / 5e10
    seconds[2] *= factor
    line = fit_line(SIZES, seconds)
    assert line is not None
    assert line.misfit == pytest.approx(np.abs(line.seconds(SIZES) / seconds - 1).max())


@pytest.mark.parametrize("sizes", [SIZES[:3], np.array([1.0, 1.0, 2.0, 2.0])])
def test_too_few_sizes_give_no_line(sizes: np.ndarray) -> None:
    assert fit_line(sizes, sizes) is None
