"""Waits of a neighbour, computed from made-up calls and registrations."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tests.kernels.pinning.fake import PINNING, WAITS

MS = 1_000_000
EVERYTHING = (0, 1000 * MS)
CHUNKS = np.array([[begin * MS, (begin + 2) * MS, 2 * MS, 0] for begin in (10, 12, 14)], np.int64)
"""Three registrations of 2 ms in turn, from 10 ms on."""


def calls(*times: tuple[float, ...]) -> npt.NDArray[np.int64]:
    """Calls of begin, end, time on a core and time in its queue, in ms."""
    return np.array([[round(ms * MS) for ms in call] for call in times], np.int64)


def waits(
    *times: tuple[float, ...], window: tuple[int, int] = EVERYTHING, touching: float = 10
) -> dict[str, float]:
    touched = 0, round(touching * MS)
    found: dict[str, float] = WAITS.neighbour_waits("call_", calls(*times), CHUNKS, window, touched)
    assert set(found) <= set(PINNING.metrics)
    return found


def test_a_wait_for_one_chunk_lies_within_it() -> None:
    found = waits((9, 9.5, 0.5, 0), (12.1, 14.05, 0.1, 0))
    assert found["call_worst"] == pytest.approx(1.95e-3)
    assert found["call_worst_chunks"] == 2
    assert found["call_worst_in_chunks"] == pytest.approx(1)
    assert found["call_worst_in_one"] == pytest.approx(1.9 / 1.95)
    assert found["call_worst_running"] == pytest.approx(0.1 / 1.95)
    assert found["call_worst_queued"] == found["call_worst_touching"] == 0
    assert found["call_worst_end_gap"] == pytest.approx(0.05e-3)
    assert found["call_worst_bound"] == pytest.approx(1.95 / (1.2 * 2 + 1))
    assert found["call_slow"] == 0
    assert "call_slow_in_chunks" not in found


def test_a_wait_for_several_chunks_is_longer_than_one_explains() -> None:
    found = waits((10.5, 15.5, 0, 0))
    assert found["call_worst_chunks"] == 3
    assert found["call_worst_in_chunks"] == pytest.approx(1)
    assert found["call_worst_in_one"] == pytest.approx(0.4)
    assert found["call_worst_end_gap"] == pytest.approx(0.5e-3)
    assert found["call_worst_bound"] > 1


def test_a_call_while_pages_are_touched_waits_for_no_chunk() -> None:
    found = waits((1, 9, 8, 0), (12, 13, 1, 0))
    assert found["call_worst_touching"] == 1
    assert found["call_worst_chunks"] == found["call_worst_in_chunks"] == 0


def test_slow_calls_are_summed_up() -> None:
    found = waits((2, 9, 1, 6), (9, 10, 1, 0), (10, 17, 1, 0))
    assert found["call_slow"] == 2
    assert found["call_slow_in_chunks"] == pytest.approx(6 / 14)
    assert found["call_slow_queued"] == pytest.approx(6 / 14)


def test_a_slow_call_takes_more_than_the_claims_allow() -> None:
    assert waits((0, 6, 6, 0))["call_slow"] == 0
    assert waits((0, 6.000001, 6, 0))["call_slow"] == 1
    for metric in ("each_chunk_is_short", "small_chunks_stall_nobody"):
        (claim,) = (one for one in PINNING.claims if one.id == metric)
        assert getattr(claim.tests[0], "at_most") == WAITS.SLOW_S  # noqa: B009


def test_calls_outside_of_the_window_do_not_count() -> None:
    found = waits((0, 9, 9, 0), (12, 13, 1, 0), (20, 40, 1, 0), window=(9 * MS, 20 * MS))
    assert found["call_worst"] == pytest.approx(1e-3)
    assert found["call_slow"] == 0


def test_unknown_waits_for_a_core_are_left_out() -> None:
    waits_s = -1 / MS  # the counter itself is -1
    found = waits((10, 18, 8, waits_s))
    assert "call_worst_queued" not in found and "call_slow_queued" not in found
    assert found["call_worst_running"] == 1 and found["call_slow"] == 1


def test_a_share_of_the_counters_is_at_most_1() -> None:
    found = waits((10, 11, 1.1, 1.2))
    assert found["call_worst_running"] == found["call_worst_queued"] == 1


def test_without_calls_or_chunks_there_is_nothing() -> None:
    none = np.empty((0, 4), np.int64)
    assert WAITS.neighbour_waits("call_", none, CHUNKS, EVERYTHING) == {}
    assert WAITS.neighbour_waits("call_", calls((1, 2, 1, 0)), none, EVERYTHING) == {}
    assert WAITS.chunk_times("chunk_register_", none) == {}


def test_times_of_chunks_and_the_thread_of_the_longest() -> None:
    times = calls((0, 1, 1, 0), (1, 3, 2, 0), (3, 8, 1, 3))
    assert WAITS.chunk_times("chunk_register_", times) == pytest.approx(
        {
            "chunk_register_median": 2e-3,
            "chunk_register_p99": 5e-3,
            "chunk_register_worst": 5e-3,
            "chunk_register_worst_running": 0.2,
            "chunk_register_worst_queued": 0.6,
        }
    )


def test_unpinning_has_no_touching() -> None:
    found = WAITS.neighbour_waits("unpin_", calls((11, 15, 1, 0)), CHUNKS, EVERYTHING)
    assert "unpin_worst_touching" not in found
    assert set(found) <= set(PINNING.metrics)
