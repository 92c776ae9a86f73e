"""Replays of the study's patterns over a driver that is a table on the host."""

from __future__ import annotations

from typing import Any

from allocator.lib.replay import Reported
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["fragmentation"]
WORKLOAD = load_python(STUDY, "workload")


def replay(module: Any, pattern: str, capacity: int = 139 * 2**30) -> Any:
    """A replay of a pattern by the allocator of `module` over a driver with `capacity` bytes."""
    return WORKLOAD.Replay(
        module,
        WORKLOAD.KNOWN[pattern](),
        Reported.CALLS | Reported.MEMORY,
        source=lambda: module.HostSource(capacity),
    )


def assert_memory_is_told(operation: Any) -> None:
    operation.launch(0)
    assert operation.check() is None
    samples = operation.own_samples(0, 1)
    assert set(samples) == set(STUDY.metrics)
    assert 0 < samples["requested"][0] <= samples["active"][0] <= samples["reserved"][0]
    assert samples["driver_calls"] == [0]
