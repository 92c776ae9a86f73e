"""The patterns of fragmentation, and their replays."""

from typing import Any

import numpy as np
import pytest

from allocator.fragmentation.patterns import PATTERNS
from allocator.lib.replay import Reported
from analysis.toolchain.modules import load_python
from tests.kernels.phases.modules import GIB, MIB, Host, built
from tests.repository import STUDIES

STUDY = STUDIES["fragmentation"]
WORKLOAD = load_python(STUDY, "workload")
GPU_BYTES = 139 * GIB


def replay(of: Any, pattern: str, capacity: int = GPU_BYTES) -> Any:
    """A launched replay of a pattern by the allocator of a module, with `capacity` bytes."""
    parts = Reported.CALLS | Reported.MEMORY
    tapes = WORKLOAD.KNOWN[pattern]()
    operation = WORKLOAD.Replay(of, tapes, parts, source=lambda: of.HostSource(capacity))
    operation.launch(0)
    return operation


def reserved(operation: Any) -> float:
    """Reserved bytes of a replay, after its check."""
    assert operation.check() is None
    samples = {name: values[0] for name, values in operation.own_samples(0, 1).items()}
    assert set(samples) == set(STUDY.metrics)
    assert 0 < samples["requested"] <= samples["active"] <= samples["reserved"]
    assert samples["driver_calls"] == 0
    return float(samples["reserved"])


@pytest.mark.parametrize("name", PATTERNS)
def test_a_replay_is_short_the_same_every_time_and_fits_a_gpu_well(name: str) -> None:
    pattern = PATTERNS[name]()
    (tape,), (repeated,) = pattern.tapes, PATTERNS[name]().tapes
    assert np.array_equal(tape, repeated) and len(tape) <= 25_000
    host = Host("p5_dropin", GPU_BYTES)
    runner = host.replay(pattern.tapes, pattern.streams)
    most = runner.check(False)
    runner.run(9)
    held = host.statistics()["reserved"]
    assert 100 * MIB < most < 16 * GIB and held < GPU_BYTES // 4
    assert name != "growing_batch" or held > 4 * most  # what grows fits into no free block


def test_memory_is_reported_a_limit_kept_and_a_lack_of_memory_a_fault() -> None:
    assert {case["pattern"] for one in STUDY.variants for case in one.cases} <= {*WORKLOAD.KNOWN}
    reserved(replay(built("p5_dropin"), "host_ahead"))
    for mib in (272, 768):
        assert 248 <= reserved(replay(built("p5_dropin"), f"limited_{mib}mib")) / MIB <= mib
    operation = replay(built("p5_dropin"), "growing_batch", 2**27)
    assert "out of memory on device 0" in operation.check()
