"""Statistics of a neighbour's calls, and what its waits were for, by made-up times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

PINNING = STUDIES["pinning"]
WAITS, NEIGHBOURS = (load_python(PINNING, name) for name in ("waits", "neighbours"))
MS = 1_000_000
LEFT_OUT = -1.0
UNKNOWN = -1 / MS
"""The counter of the queue is -1."""
WHOLE = 0, 1000 * MS


def calls(*times: tuple[float, ...]) -> Any:
    """Calls of begin, end, time on a core and time in its queue, in ms."""
    return (np.array(times).reshape(-1, 4) * MS).round().astype(np.int64)


CHUNKS = calls((10, 12, 2, 0), (12, 14, 2, 0), (14, 16, 2, 0))
"""Three registrations in turn; pages are touched before."""

WAITS_OF: dict[str, tuple[Any, dict[str, float]]] = {
    "within one chunk": (
        calls((9, 9.5, 0.5, 0), (12.1, 14.05, 0.1, 0)),
        {"worst": 1.95e-3, "worst_chunks": 2, "worst_in_chunks": 1, "worst_in_one": 1.9 / 1.95}
        | {"worst_running": 0.1 / 1.95, "worst_queued": 0, "worst_touching": 0, "slow": 0}
        | {"worst_end_gap": 0.05e-3, "worst_bound": 1.95 / 3.4, "slow_in_chunks": LEFT_OUT},
    ),
    "for several chunks": (
        calls((10.5, 15.5, 0, 0)),
        {"worst_chunks": 3, "worst_in_chunks": 1, "worst_in_one": 0.4, "worst_end_gap": 0.5e-3}
        | {"worst_bound": 5 / 3.4},
    ),
    "while pages are touched": (
        calls((1, 9, 8, 0), (12, 13, 1, 0)),
        {"worst_touching": 1, "worst_chunks": 0, "worst_in_chunks": 0},
    ),
    "slow calls are summed up": (
        calls((2, 9, 1, 6), (9, 10, 1, 0), (10, 17, 1, 0)),
        {"slow": 2, "slow_in_chunks": 6 / 14, "slow_queued": 6 / 14},
    ),
    "one is slow beyond the limit": (calls((0, 6.000001, 6, 0)), {"slow": 1}),
    "unknown waits for a core": (
        calls((10, 18, 8, UNKNOWN)),
        {"worst_queued": LEFT_OUT, "slow_queued": LEFT_OUT, "worst_running": 1, "slow": 1},
    ),
    "no calls": (calls(), {"worst": LEFT_OUT, "slow": LEFT_OUT}),
}
"""Calls and some of their statistics."""


@pytest.mark.parametrize("name", WAITS_OF)
def test_waits_are_those_of_the_longest_and_of_slow_calls(name: str) -> None:
    times, expected = WAITS_OF[name]
    found = WAITS.neighbour_waits("call_", times, CHUNKS, WHOLE, (0, 10 * MS))
    assert set(found) <= set(PINNING.metrics)
    waits = {one: found.get(f"call_{one}", LEFT_OUT) for one in expected}
    assert waits == pytest.approx(expected)


def test_only_calls_in_the_window_count_and_the_percentile_is_one_of_them() -> None:
    times = calls((0, 9, 9, 0), (12, 13, 1, 0), (20, 40, 1, 0))
    found = WAITS.neighbour_waits("call_", times, CHUNKS, (9 * MS, 20 * MS))
    assert found["call_worst"] == pytest.approx(1e-3) and found["call_slow"] == 0
    assert WAITS.neighbour_waits("call_", times, calls(), WHOLE) == {}
    found = NEIGHBOURS.summary("call_", np.arange(1, 201) / 100)
    assert found == {"call_median": 1.005, "call_p99": 1.99, "call_worst": 2.0}
