"""The patterns of fragmentation, their replays, and the configuration of PyTorch's allocator."""

from __future__ import annotations

import sys
from types import SimpleNamespace
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
    """A replay of a pattern by the allocator of a module, over a driver with `capacity` bytes."""
    parts = Reported.CALLS | Reported.MEMORY
    tapes = WORKLOAD.KNOWN[pattern]()
    return WORKLOAD.Replay(of, tapes, parts, source=lambda: of.HostSource(capacity))


def memory(operation: Any) -> tuple[float, float]:
    """Requested and reserved bytes of a replay, after its check."""
    operation.launch(0)
    assert operation.check() is None
    samples = operation.own_samples(0, 1)
    assert set(samples) == set(STUDY.metrics)
    assert 0 < samples["requested"][0] <= samples["active"][0] <= samples["reserved"][0]
    assert samples["driver_calls"] == [0]
    return samples["requested"][0], samples["reserved"][0]


@pytest.mark.parametrize("name", PATTERNS)
def test_a_replay_is_short_the_same_every_time_and_fits_a_gpu_well(name: str) -> None:
    first, again = PATTERNS[name](), PATTERNS[name]()
    (tape,), (repeated,) = first.tapes, again.tapes
    assert np.array_equal(tape, repeated)
    assert len(tape) <= 25_000
    assert tape[:, 3].max() < first.streams
    for allocator in ("p4_final", "p5_dropin"):
        host = Host(allocator, GPU_BYTES)
        runner = host.replay(first.tapes, first.streams)
        most = runner.check(False)
        runner.run(9)
        reserved = host.statistics()["reserved"]
        assert 100 * MIB < most < 16 * GIB and reserved < GPU_BYTES // 4
        if (name, allocator) == (
            "growing_batch",
            "p5_dropin",
        ):  # what grows fits into no free block
            assert reserved > 4 * most
        if (name, allocator) == ("one_bin", "p4_final"):  # each request takes a block of its size
            assert reserved == most


def test_no_part_of_a_long_run_is_like_another() -> None:
    (tape,) = ALONE["long_run"]().tapes
    sizes = tape[tape[:, 0] == ALLOCATE, 2][2_000:].reshape(-1, 6_000)
    medians = np.median(sizes, axis=1)
    assert len(tape) == 1_000_000 and medians.max() > 20 * medians.min()


@pytest.mark.parametrize("pattern", ["growing_batch", "host_ahead"])
def test_memory_is_reported(pattern: str) -> None:
    memory(replay(built("p5_dropin"), pattern))


@pytest.mark.parametrize("mib", [272, 384, 768])
def test_a_limit_is_kept_and_memory_kept_in_vain_is_returned(mib: int) -> None:
    _, reserved = memory(replay(built("p5_dropin"), f"limited_{mib}mib"))
    assert 248 * MIB <= reserved <= mib * MIB


def test_an_allocator_without_memory_fails_the_cell_alone() -> None:
    operation = replay(built("p5_dropin"), "growing_batch", 2**27)
    operation.launch(0)
    assert "out of memory on device 0" in operation.check()


def test_every_case_has_its_pattern_and_others_are_refused() -> None:
    cases = {case["pattern"] for variant in STUDY.variants for case in variant.cases}
    assert cases <= set(WORKLOAD.KNOWN)
    workload = WORKLOAD.Workload({}, np.random.default_rng(0))
    with pytest.raises(FieldError, match="pattern: expected one of"):
        workload.prepare(Case({"pattern": "unheard_of"}, 0, "default"))


def test_pytorch_gets_its_settings_when_it_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    cuda = SimpleNamespace(
        init=lambda: calls.append("init"),
        empty_cache=lambda: calls.append("empty"),
        get_device_properties=lambda _: SimpleNamespace(total_memory=2**30),
        set_per_process_memory_fraction=lambda share, _: calls.append(f"{share:g}"),
        memory=SimpleNamespace(_set_allocator_settings=calls.append),
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    for pattern, share in (("limited_768mib", "0.75"), ("growing_batch", "1")):
        calls.clear()
        WORKLOAD.set_up_torch(WORKLOAD.SETTINGS["torch_expandable"], WORKLOAD.KNOWN[pattern]())
        assert calls == ["init", "empty", "expandable_segments:True", share]
    assert {one.name for one in STUDY.variants if "torch" in one.needs} == set(WORKLOAD.SETTINGS)
    assert all("expandable_segments:" in settings for settings in WORKLOAD.SETTINGS.values())


@pytest.mark.long
def test_rmm_replays_refuses_a_limit_and_fails_without_memory() -> None:
    rmm = module(STUDY, RMM, optimisation="-O1")  # as the allocators, to share bindings
    for case in RMM.cases:
        memory(replay(rmm, str(case["pattern"])))
    operation = replay(rmm, "growing_batch", 2**27)
    with pytest.raises(ValueError, match=r"^limit: .*, got rmm_pool$"):
        operation._allocator.set_limit(0, 2**20)
    operation.launch(0)
    assert "the driver has no" in operation.check()
