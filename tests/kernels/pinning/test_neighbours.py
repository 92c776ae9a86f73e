"""The statistics of a neighbour's calls, and the ranges around borders that the check copies."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.pinning.fake import NEIGHBOURS, WORKLOAD


def test_edges_cover_both_sides_of_every_border() -> None:
    edge = WORKLOAD.EDGE
    assert WORKLOAD.edges(2**22 + 7, 2**21) == [
        (0, edge),
        (2**21 - edge, 2 * edge),
        (2**22 - edge, edge + 7),
        (2**22 + 7 - edge, edge),
    ]
    assert WORKLOAD.edges(10, 2**21) == [(0, 10), (0, 10)]


def test_latencies_are_those_of_calls_that_overlap_the_window() -> None:
    times = np.array([[0, 10], [10, 20], [20, 90], [90, 95]], np.int64)
    assert NEIGHBOURS.latencies(times, (15, 90)) == pytest.approx([1e-8, 7e-8])
    assert NEIGHBOURS.latencies(times, (30, 40)) == pytest.approx([7e-8])
    assert NEIGHBOURS.summary("call_", NEIGHBOURS.latencies(times, (100, 200))) == {}


def test_the_percentile_is_the_time_of_a_call() -> None:
    seconds = np.arange(1, 201) / 100
    found = NEIGHBOURS.summary("call_", seconds)
    assert found == {"call_median": 1.005, "call_p99": 1.99, "call_worst": 2.0}
