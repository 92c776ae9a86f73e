"""The metrics of a replay, and the configuration of PyTorch's allocator."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.study import Case
from tests.kernels.fragmentation.replays import STUDY, WORKLOAD, assert_memory_is_told, replay
from tests.kernels.phases.modules import built


@pytest.mark.parametrize("pattern", ["growing_batch", "host_ahead"])
def test_memory_is_told_of_every_pattern(pattern: str) -> None:
    assert_memory_is_told(replay(built("p5_dropin"), pattern))


@pytest.mark.parametrize("mib", [272, 384, 768])
def test_a_limit_is_kept_and_what_is_kept_in_vain_goes_back(mib: int) -> None:
    operation = replay(built("p5_dropin"), f"limited_{mib}mib")
    operation.launch(0)
    assert operation.check() is None
    samples = operation.own_samples(0, 1)
    assert 248 * 2**20 <= samples["reserved"][0] <= mib * 2**20


def test_a_long_tape_is_checked_but_not_written() -> None:
    operation = replay(built("p5_dropin"), "long_run")
    written: list[bool] = []
    runner = operation._runner
    operation._runner = SimpleNamespace(operations=runner.operations, check=written.append)
    operation._on_gpu = True
    operation.launch(0)
    assert runner.operations == 1_000_000
    assert written == [False]


def test_no_memory_left_is_a_fault_of_the_cell_and_not_of_the_round() -> None:
    operation = replay(built("p5_dropin"), "growing_batch", 2**27)
    operation.launch(0)
    assert "out of memory on device 0" in operation.check()


def test_every_case_has_its_pattern_and_others_are_refused() -> None:
    for variant in STUDY.variants:
        for case in variant.cases:
            assert case["pattern"] in WORKLOAD.KNOWN
    workload = WORKLOAD.Workload({}, np.random.default_rng(0))
    with pytest.raises(FieldError, match="pattern: expected one of"):
        workload.prepare(Case({"pattern": "unheard_of"}, 0, "default"))


def test_pytorch_gets_its_settings_when_it_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    memory = SimpleNamespace(_set_allocator_settings=calls.append)
    cuda = SimpleNamespace(
        init=lambda: calls.append("init"),
        empty_cache=lambda: calls.append("empty"),
        get_device_properties=lambda _: SimpleNamespace(total_memory=2**30),
        set_per_process_memory_fraction=lambda share, _: calls.append(f"{share:g}"),
        memory=memory,
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    for pattern, share in (("limited_768mib", "0.75"), ("growing_batch", "1")):
        calls.clear()
        WORKLOAD.set_up_torch(WORKLOAD.SETTINGS["torch_expandable"], WORKLOAD.KNOWN[pattern]())
        assert calls == ["init", "empty", "expandable_segments:True", share]


def test_every_reference_of_pytorch_has_settings_and_they_say_what_they_leave() -> None:
    pytorch = {variant.name for variant in STUDY.variants if "torch" in variant.needs}
    assert pytorch == set(WORKLOAD.SETTINGS)
    assert all("expandable_segments:" in settings for settings in WORKLOAD.SETTINGS.values())
