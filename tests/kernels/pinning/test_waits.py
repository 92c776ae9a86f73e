"""Statistics of a neighbour's calls, and what its waits were for, by made-up times."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tests.kernels.pinning.fake import NEIGHBOURS, PINNING, WAITS

MS = 1_000_000
CHUNKS = np.array([[begin * MS, (begin + 2) * MS, 2 * MS, 0] for begin in (10, 12, 14)], np.int64)
"""Three registrations of 2 ms in turn, from 10 ms on; pages are touched before."""
LEFT_OUT = -1.0
UNKNOWN = -1 / MS
"""The counter of the queue is -1."""
NO_CALLS = np.empty((0, 4), np.int64)


def calls(*times: tuple[float, ...]) -> npt.NDArray[np.int64]:
    """Calls of begin, end, time on a core and time in its queue, in ms."""
    return np.array([[round(ms * MS) for ms in call] for call in times], np.int64)


def waits(*times: tuple[float, ...], window: tuple[int, int] = (0, 1000 * MS)) -> dict[str, float]:
    found: dict[str, float] = WAITS.neighbour_waits(
        "call_", calls(*times), CHUNKS, window, (0, 10 * MS)
    )
    assert set(found) <= set(PINNING.metrics)
    return {name.removeprefix("call_"): value for name, value in found.items()}


WAITS_OF: dict[str, tuple[list[tuple[float, ...]], dict[str, float]]] = {
    "within one chunk": (
        [(9, 9.5, 0.5, 0), (12.1, 14.05, 0.1, 0)],
        {"worst": 1.95e-3, "worst_chunks": 2, "worst_in_chunks": 1, "worst_in_one": 1.9 / 1.95}
        | {"worst_running": 0.1 / 1.95, "worst_queued": 0, "worst_touching": 0, "slow": 0}
        | {
            "worst_end_gap": 0.05e-3,
            "worst_bound": 1.95 / (1.2 * 2 + 1),
            "slow_in_chunks": LEFT_OUT,
        },
    ),
    "for several chunks": (
        [(10.5, 15.5, 0, 0)],
        {"worst_chunks": 3, "worst_in_chunks": 1, "worst_in_one": 0.4, "worst_end_gap": 0.5e-3}
        | {"worst_bound": 5 / 3.4},
    ),
    "while pages are touched": (
        [(1, 9, 8, 0), (12, 13, 1, 0)],
        {"worst_touching": 1, "worst_chunks": 0, "worst_in_chunks": 0},
    ),
    "slow calls are summed up": (
        [(2, 9, 1, 6), (9, 10, 1, 0), (10, 17, 1, 0)],
        {"slow": 2, "slow_in_chunks": 6 / 14, "slow_queued": 6 / 14},
    ),
    "none is slow up to the limit": ([(0, 6, 6, 0)], {"slow": 0}),
    "one is slow beyond the limit": ([(0, 6.000001, 6, 0)], {"slow": 1}),
    "unknown waits for a core": (
        [(10, 18, 8, UNKNOWN)],
        {"worst_queued": LEFT_OUT, "slow_queued": LEFT_OUT, "worst_running": 1, "slow": 1},
    ),
    "a share is at most 1": ([(10, 11, 1.1, 1.2)], {"worst_running": 1, "worst_queued": 1}),
}
"""Calls and some of their statistics."""


@pytest.mark.parametrize("name", WAITS_OF)
def test_waits_are_those_of_the_longest_and_of_slow_calls(name: str) -> None:
    times, expected = WAITS_OF[name]
    found = waits(*times)
    assert {one: found.get(one, LEFT_OUT) for one in expected} == pytest.approx(expected)


def test_a_slow_call_takes_more_than_the_claims_allow() -> None:
    claims = [
        c for c in PINNING.claims if c.id in ("each_chunk_is_short", "small_chunks_stall_nobody")
    ]
    assert {vars(one.tests[0])["at_most"] for one in claims} == {WAITS.SLOW_S}


def test_calls_outside_of_the_window_do_not_count() -> None:
    found = waits((0, 9, 9, 0), (12, 13, 1, 0), (20, 40, 1, 0), window=(9 * MS, 20 * MS))
    assert [found["worst"], found["slow"]] == pytest.approx([1e-3, 0])
    times = np.array([[0, 10], [10, 20], [20, 90], [90, 95]], np.int64)
    for window, expected in {(15, 90): [1e-8, 7e-8], (30, 40): [7e-8], (100, 200): []}.items():
        assert NEIGHBOURS.latencies(times, window) == pytest.approx(expected)


def test_the_percentile_is_the_time_of_a_call() -> None:
    found = NEIGHBOURS.summary("call_", np.arange(1, 201) / 100)
    assert found == {"call_median": 1.005, "call_p99": 1.99, "call_worst": 2.0}


def test_without_calls_or_chunks_there_is_nothing() -> None:
    window = 0, 1000 * MS
    assert WAITS.neighbour_waits("call_", NO_CALLS, CHUNKS, window) == {}
    assert WAITS.neighbour_waits("call_", calls((1, 2, 1, 0)), NO_CALLS, window) == {}
    assert WAITS.chunk_times("chunk_register_", NO_CALLS) == {}
    assert NEIGHBOURS.summary("call_", np.empty(0)) == {}
    unpinning = WAITS.neighbour_waits("unpin_", calls((11, 15, 1, 0)), CHUNKS, window)
    assert "unpin_worst_touching" not in unpinning and set(unpinning) <= set(PINNING.metrics)
