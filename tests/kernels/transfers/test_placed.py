"""Pieces at any place: the check of every byte, and the host code of each way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.study import Case, CaseValue
from analysis.toolchain.modules import load_python
from kernels.transfers.layout import POISON
from tests.kernels.device import FakeDevice, outcome
from tests.kernels.stubbed import stubbed
from tests.kernels.transfers.fake import TRANSFERS, FakeHost

PLACED = load_python(TRANSFERS, "placed")
HOST_METHODS = ["loop", "batch", "graph", "graph_flat"]
LAYOUTS = ("packed", "pitched", "scattered")


def listed(
    size: int, count: int, direction: str = "h2d", host: str = "scattered", device: str = "packed"
) -> Case:
    values: dict[str, CaseValue] = {
        "size": size,
        "count": count,
        "direction": direction,
        "host": host,
        "device": device,
        "busy": 0,
    }
    return Case(values, size * count, "default")


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(PLACED, "DeviceArray", FakeDevice)
    monkeypatch.setattr(PLACED, "HostMemory", FakeHost)
    return PLACED.Workload({}, np.random.default_rng(0))


def operation_of(workload: Any, name: str, case: Case, **more: CaseValue) -> Any:
    variant = TRANSFERS.variant(f"pinned_list_{name}")
    case = Case({**case.values, **more}, case.payload_bytes, "default")
    return workload.prepare(case).bind(variant, stubbed(TRANSFERS, variant.name))


@pytest.mark.parametrize("name", HOST_METHODS)
def test_every_piece_arrives_at_its_place(workload: Any, name: str) -> None:
    for direction in ("h2d", "d2h"):
        for layouts in (("scattered", "scattered"), ("pitched", "packed"), ("packed", "scattered")):
            for size, count in ((1, 1), (7, 9), (4096, 3), (16, 250)):
                case = listed(size, count, direction, *layouts)
                operation = operation_of(workload, name, case)
                for _ in range(2):
                    assert outcome(operation) is None, case.id


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_pack_every_piece(workload: Any, threads: int) -> None:
    for direction in ("h2d", "d2h"):
        for size, count in ((1, 1), (7, 9), (4096, 90), (48, 3)):
            case = listed(size, count, direction)
            operation = operation_of(workload, "packed", case, threads=threads)
            for _ in range(3):
                assert outcome(operation) is None, case.id
            assert outcome(operation_of(workload, "packed_1", case)) is None


def test_packing_needs_packed_pieces_on_the_device(workload: Any) -> None:
    with pytest.raises(ValueError, match="device: expected packed pieces"):
        operation_of(workload, "packed", listed(16, 9, device="scattered"))


def test_a_list_needs_an_address() -> None:
    with pytest.raises(ValueError, match="landing: expected the address of the places, got 0"):
        stubbed(TRANSFERS, "pinned_list_loop").bind(16, 16, size=8, pitch=8)


@pytest.mark.parametrize("direction", ["h2d", "d2h"])
@pytest.mark.parametrize("fault", ["bit", "around", "swapped", "never"])
def test_the_check_finds_a_fault(workload: Any, direction: str, fault: str) -> None:
    operation = operation_of(workload, "loop", listed(32, 6, direction, device="scattered"))
    operation.poison()
    if fault != "never":
        operation.launch(0)
    placed = operation.placed
    image = placed.device.array if direction == "h2d" else placed.host
    side = placed.on_device if direction == "h2d" else placed.on_host
    rows = image[4096:-4096].reshape(6, side.pitch)
    if fault == "bit":
        rows[3, 0] ^= 1
    elif fault == "around":
        rows[3, -1] = POISON ^ 1
    elif fault == "swapped":
        rows[[0, 1]] = rows[[1, 0]]
    assert operation.check() is not None


def test_a_busy_stream_has_work_before_the_pieces(
    workload: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[Any, ...]] = []
    runtime = SimpleNamespace(
        cudaMemsetAsync=lambda *arguments: calls.append(arguments),
        cudaStreamSynchronize=lambda stream: None,
    )
    monkeypatch.setattr(PLACED, "cudart", runtime)
    monkeypatch.setattr(PLACED, "cuda", lambda result: result)
    operation = operation_of(workload, "loop", listed(64, 5), busy=1)
    assert outcome(operation) is None
    (set_bytes,) = (size for _, _, size, _ in calls)
    assert set_bytes == PLACED.MARK_BYTES
    samples = operation.own_samples(0, 2)
    assert len(samples["cpu_time"]) == PLACED.CALLS  # short calls are counted more often
    assert all(seconds >= 0 for seconds in samples["cpu_time"])


def test_places_are_distinct_and_scattered_ones_in_no_order(workload: Any) -> None:
    placed = workload.prepare(listed(64, 500, host="scattered", device="pitched"))
    host, device = placed.places.T
    assert len(set(host.tolist())) == 500
    assert (np.diff(host) < 0).any()
    assert set(np.diff(device).tolist()) == {128}


@pytest.mark.parametrize(
    ("case", "field"),
    [
        (listed(0, 1), "size"),
        (listed(1, 0), "count"),
        (listed(1, 1, "up"), "direction"),
        (listed(1, 1, host="round"), "layout"),
    ],
)
def test_impossible_pieces_are_an_error(workload: Any, case: Case, field: str) -> None:
    with pytest.raises(FieldError, match=field):
        workload.prepare(case)
