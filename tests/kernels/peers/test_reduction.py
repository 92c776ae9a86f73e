"""All-reduces, timed and beside gathers, with a fake PyTorch."""

from __future__ import annotations

import os
from typing import Any

import pytest

from analysis.measure.cell import Skip
from tests.kernels.peers import fake_torch
from tests.kernels.peers.fake import PEERS, REDUCTION, Mover, case, fake_workload

CALLER = 7


def bound(monkeypatch: pytest.MonkeyPatch, name: str, fault: str = "") -> tuple[Any, Any, Any]:
    """The variant bound, what it moves rows with, and its PyTorch."""
    torch = fake_torch.install(monkeypatch, fault)
    variant = PEERS.variant(name)
    mover = Mover(variant.path)
    inputs = fake_workload(monkeypatch).prepare(case())
    operation = inputs.bind(variant, mover)
    operation.inputs = inputs  # whose memory is read at its addresses
    torch.reduced = 0
    return operation, mover, torch


def test_nvlink_multicast_is_off() -> None:
    assert os.environ["NCCL_NVLS_ENABLE"] == "0"


def test_an_all_reduce_comes_in_the_order_of_the_callers_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    operation, mover, torch = bound(monkeypatch, "all_reduce_beside_pull")
    operation.launch(CALLER)
    caller = torch.callers[CALLER]
    assert torch.reduced == 1
    assert [stream.device for stream in caller.waited] == [0, 1]
    assert all(stream.waited == [caller] for stream in caller.waited)
    assert all(stream.priority < 0 for stream in caller.waited)
    assert operation.waits
    (part,) = mover.parts
    assert (part.gpu, part.is_neighbour) == (1, True)
    assert part.pool == operation.inputs._pool(0).pointer
    operation.reset(CALLER)
    assert mover.rejoined == 1


def test_a_gather_is_launched_while_all_gpus_reduce(monkeypatch: pytest.MonkeyPatch) -> None:
    operation, mover, torch = bound(monkeypatch, "pulled_beside_all_reduce")
    operation.poison()
    assert torch.reduced == REDUCTION.TURNS
    operation.launch(CALLER)
    assert torch.reduced == REDUCTION.TURNS, "the launch is timed, so it enqueues no all-reduce"
    assert operation.check() is None
    operation.reset(CALLER)
    assert torch.reduced == 2 * REDUCTION.TURNS
    assert [stream.device for stream in torch.callers[CALLER].waited] == [0, 1]
    assert len(mover.sets) == 1
    assert not operation.waits, "its stream can be held: the launch is a plain gather"


@pytest.mark.parametrize("name", ["all_reduce", "from_host_beside_all_reduce"])
@pytest.mark.parametrize("fault", ["one bit", "behind"])
def test_wrong_sums_are_found(monkeypatch: pytest.MonkeyPatch, name: str, fault: str) -> None:
    operation, _, _ = bound(monkeypatch, name, fault)
    operation.poison()
    operation.launch(CALLER)
    assert operation.check().startswith("sums: GPU")


def test_gpus_that_nccl_cannot_connect_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Skip, match="NCCL: unhandled system error"):
        bound(monkeypatch, "all_reduce", "refused")
