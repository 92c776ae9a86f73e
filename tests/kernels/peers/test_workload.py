"""Who moves which rows, what runs beside them, and all-reduces."""

import os
from typing import Any

import pytest

from analysis.measure.cell import Skip
from analysis.toolchain.modules import load_python
from tests.conformance.binding import outcome
from tests.conformance.emulated import bound, draw_few
from tests.kernels.cuda import Cuda
from tests.kernels.peers import fake_torch
from tests.repository import STUDIES

REDUCTION = load_python(STUDIES["peers"], "reduction")
CALLER, MIB = 7, 2**20


@pytest.fixture(autouse=True)
def torch(fake: Cuda, monkeypatch: pytest.MonkeyPatch) -> fake_torch.Torch:
    draw_few(monkeypatch)
    return fake_torch.install(monkeypatch)


def launched(name: str, **values: Any) -> Any:
    """The variant bound to a case and launched once."""
    operation = bound("peers", name, values)
    operation.poison()
    operation.launch(CALLER)
    return operation


def test_a_neighbour_is_waited_for_before_each_launch_and_its_rows_are_checked() -> None:
    operation = launched("pulled_beside_gather")
    operation.reset(0)
    assert operation.module.rejoined == 1
    operation._parts[1].output.fill(0)
    assert operation.check().startswith("GPU 1: destination row 0, byte")
    assert launched("pulled").reset is None


# All-reduces.


def test_an_all_reduce_comes_in_the_order_of_the_callers_stream(torch: fake_torch.Torch) -> None:
    operation = bound("peers", "all_reduce_beside_pull")
    before = torch.reduced
    operation.launch(CALLER)
    assert torch.reduced == before + 1
    streams = torch.callers[CALLER].waited
    assert [stream.device for stream in streams] == [0, 1]
    assert all(stream.waited == [torch.callers[CALLER]] for stream in streams)
    assert all(stream.priority < 0 for stream in streams)
    assert operation.waits
    (part,) = operation.module.parts
    assert (part.gpu, part.is_neighbour) == (1, True)


def test_a_gather_is_launched_while_all_gpus_reduce(torch: fake_torch.Torch) -> None:
    operation = bound("peers", "pulled_beside_all_reduce")
    torch.reduced = 0
    operation.poison()
    operation.launch(CALLER)
    assert torch.reduced == REDUCTION.TURNS, "the launch is timed, so it enqueues no all-reduce"
    assert operation.check() is None
    operation.reset(CALLER)
    assert torch.reduced == 2 * REDUCTION.TURNS
    assert [stream.device for stream in torch.callers[CALLER].waited] == [0, 1]
    assert not operation.waits, "its stream can be held: the launch is a plain gather"


def test_nccl_has_no_multicast_and_its_refusal_is_a_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    assert os.environ["NCCL_NVLS_ENABLE"] == "0"
    fake_torch.install(monkeypatch, is_refused=True)
    with pytest.raises(Skip, match="NCCL: unhandled system error"):
        bound("peers", "all_reduce")
    assert outcome(bound("peers", "pulled")) is None
