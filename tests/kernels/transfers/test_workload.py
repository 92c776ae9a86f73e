"""What moves of pieces have beside the pieces: times, work on the data, and prices of memory."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.measure.cell import PythonLauncher, Skip
from analysis.toolchain.modules import load_python
from kernels.common.host_memory import HostMemory
from kernels.common.moves import moving
from tests.conformance.binding import outcome
from tests.conformance.emulated import bound
from tests.kernels.cuda import Cuda, array_of
from tests.kernels.stubbed import stubbed
from tests.repository import STUDIES

TRANSFERS = STUDIES["transfers"]
PRICE = load_python(TRANSFERS, "price")
pytestmark = pytest.mark.usefixtures("fake")


def compiled(name: str, **values: Any) -> Any:
    """The variant with its host code."""
    return bound("transfers", name, values, stubbed(TRANSFERS, name))


@pytest.mark.parametrize("direction", ["h2d", "d2h"])
def test_no_time_contains_the_work_before_the_pieces(direction: str) -> None:
    operation = compiled("pinned_list_loop", direction=direction, busy=1)
    assert outcome(operation) is None
    mark: Any = operation.inputs._mark
    uses: list[Callable[[], object]] = [
        lambda: operation.launch(0),
        lambda: operation.launcher.time_launch(0, 0, 0),
        lambda: operation.method.cpu_times(0, 1),
    ]
    for use in uses:
        mark.fill(1)
        use()
        assert not array_of(mark).any()
    assert len(operation.own_samples(0, 2)["cpu_time"]) == moving.CPU_CALLS  # such short ones
    submit_s, host_s = operation.launcher.time_launch(0, 0, 0)
    assert 0 <= submit_s < 0.25
    assert host_s == 0.25  # between any two events of the stub


def test_a_step_by_the_cpu_changes_the_data_in_place() -> None:
    operation = compiled("pinned_step_on_host", size=4096, count=1, direction="in_place")
    assert [outcome(operation) for _ in range(2)] == [None, None]
    assert operation.own_samples(0, 1)["step_time"][0] > 0
    operation.launch(0)
    assert operation.check() is not None  # a second step on the same data


def test_a_tensor_moves_other_bytes_and_leaves_the_pieces_to_the_next_variant() -> None:
    first = bound("transfers", "pageable_loop", {"direction": "h2d", "count": 1})
    workload = first.inputs
    source = workload.source("pageable", "there").bytes[4096 : 4096 + 528]
    tensor = SimpleNamespace(output=None)

    def launch(stream: int) -> None:
        host = source.copy()
        tensor.output = SimpleNamespace(
            cpu=lambda: SimpleNamespace(numpy=lambda: host),
            fill_=lambda byte: SimpleNamespace(cpu=lambda: None),
        )

    tensor.launch = launch
    module = SimpleNamespace(bind=lambda *_, **__: tensor)
    operation = workload.bind(TRANSFERS.variant("pageable_torch_to"), module)
    assert isinstance(operation.launcher, PythonLauncher)
    assert outcome(operation) is None
    assert (source != workload.payload("there")).any()
    next_one = workload.bind(TRANSFERS.variant("pageable_loop"), first.module)
    assert outcome(next_one) is None


def test_a_price_is_that_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    is_locked = {"answer": True}
    monkeypatch.setattr(HostMemory, "is_page_locked", lambda self: is_locked["answer"])
    operation = bound("transfers", "registered_price", {"size": 5000})
    assert outcome(operation) is None
    samples = operation.own_samples(0, 2)
    parts = ("allocate", "register", "free", "write", "read")
    assert samples.keys() == {f"{part}_time" for part in parts}
    assert len(samples["allocate_time"]) == 2 and min(samples["allocate_time"]) > 0
    is_locked["answer"] = False
    assert outcome(operation) == "page-locked: expected True, got False"


def test_work_beside_held_memory_is_compared_with_work_before_and_after(
    fake: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def seconds(work: Callable[[], object]) -> float:
        work()
        return 0.03 if fake.held else 0.02

    monkeypatch.setattr(PRICE, "WORK_BYTES", 4096)
    monkeypatch.setattr(PRICE, "_seconds", seconds)
    operation = bound("transfers", "pinned_pressure", {"held_bytes": 4096})
    assert outcome(operation) is None
    samples = operation.own_samples(0, 3)
    assert samples == {"work_time": [0.03], "work_share": [pytest.approx(1.5)]}
    monkeypatch.setattr(PRICE, "allocatable_bytes", lambda: 100)
    with pytest.raises(Skip, match="26 B is more than a quarter of 100 B"):
        PRICE.Pressure("registered_huge", 26)
