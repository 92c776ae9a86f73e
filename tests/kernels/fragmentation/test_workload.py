"""The patterns of fragmentation, and their replays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from allocator.fragmentation.patterns import ALONE, PATTERNS
from allocator.lib.patterns import ALLOCATE
from allocator.lib.replay import Reported
from analysis.base.errors import FieldError
from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.compiled import module
from tests.kernels.phases.modules import GIB, MIB, Host, built
from tests.repository import STUDIES

STUDY = STUDIES["fragmentation"]
WORKLOAD = load_python(STUDY, "workload")
RMM = STUDY.variant("rmm_pool")
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
    assert np.array_equal(tape, repeated)
    assert len(tape) <= 25_000 and tape[:, 3].max() < pattern.streams
    for allocator in ("p4_final", "p5_dropin"):
        host = Host(allocator, GPU_BYTES)
        runner = host.replay(pattern.tapes, pattern.streams)
        most = runner.check(False)
        runner.run(9)
        held = host.statistics()["reserved"]
        assert 100 * MIB < most < 16 * GIB and held < GPU_BYTES // 4
        if (name, allocator) == ("growing_batch", "p5_dropin"):
            assert held > 4 * most  # what grows fits into no free block
        if (name, allocator) == ("one_bin", "p4_final"):
            assert held == most  # each request takes a block of its size


def test_no_part_of_a_long_run_is_like_another() -> None:
    (tape,) = ALONE["long_run"]().tapes
    sizes = tape[tape[:, 0] == ALLOCATE, 2][2_000:].reshape(-1, 6_000)
    medians = np.median(sizes, axis=1)
    assert len(tape) == 1_000_000 and medians.max() > 20 * medians.min()


def test_memory_is_reported_and_a_limit_is_kept() -> None:
    for name in ("growing_batch", "host_ahead"):
        reserved(replay(built("p5_dropin"), name))
    for mib in (272, 384, 768):
        assert 248 <= reserved(replay(built("p5_dropin"), f"limited_{mib}mib")) / MIB <= mib


def test_an_allocator_without_memory_fails_the_cell_alone() -> None:
    operation = replay(built("p5_dropin"), "growing_batch", 2**27)
    assert "out of memory on device 0" in operation.check()


def test_every_case_has_its_pattern_and_others_are_refused() -> None:
    cases = {case["pattern"] for variant in STUDY.variants for case in variant.cases}
    assert cases <= set(WORKLOAD.KNOWN)
    with pytest.raises(FieldError, match="pattern: expected one of"):
        WORKLOAD.Workload({}, np.random.default_rng(0)).prepare(Case({"pattern": "x"}, 0, ""))
    assert {one.name for one in STUDY.variants if "torch" in one.needs} == set(WORKLOAD.SETTINGS)


@pytest.mark.long
def test_rmm_replays_refuses_a_limit_and_fails_without_memory() -> None:
    rmm = module(STUDY, RMM, optimisation="-O1")  # as the allocators, to share bindings
    for case in RMM.cases:
        reserved(replay(rmm, str(case["pattern"])))
    operation = replay(rmm, "growing_batch", 2**27)
    assert "the driver has no" in operation.check()
    with pytest.raises(ValueError, match=r"^limit: .*, got rmm_pool$"):
        operation._allocator.set_limit(0, 2**20)
