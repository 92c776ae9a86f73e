"""The host code of the transfers' variants, with a CUDA runtime that copies immediately."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels.cuda import outcome
from tests.kernels.moves import listed, move
from tests.kernels.stubbed import stubbed
from tests.kernels.transfers.fake import TRANSFERS

HOST_METHODS = [
    *("pinned_loop", "pinned_packed", "pinned_batch"),
    *(pytest.param(name, marks=pytest.mark.long) for name in ("pinned_2d", "pinned_graph")),
]


@pytest.mark.parametrize("name", HOST_METHODS)
def test_host_methods_move_every_piece(workload: Any, name: str) -> None:
    module = stubbed(TRANSFERS, name)
    for direction in ("h2d", "d2h"):
        for size, count in ((1, 1), (7, 9), (4096, 3), (5000, 40)):
            workload.prepare(move(size, count, direction))
            operation = workload.bind(TRANSFERS.variant(name), module)
            for _ in range(2):
                assert outcome(operation) is None
            assert operation.own_samples(0, 1) == {}


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_pack_every_piece(workload: Any, threads: int) -> None:
    for direction in ("h2d", "d2h"):
        for size, count in ((1, 1), (7, 9), (4096, 90), (48, 3)):
            workload.prepare(case := listed(size, count, direction, threads=threads))
            for name in ("pinned_list_packed", "pinned_list_packed_1"):
                operation = workload.bind(TRANSFERS.variant(name), stubbed(TRANSFERS, name))
                for _ in range(3):
                    assert outcome(operation) is None, case.id


def test_packing_needs_packed_pieces_on_the_device(workload: Any) -> None:
    name = "pinned_list_packed"
    workload.prepare(listed(16, 9, device="scattered"))
    with pytest.raises(ValueError, match="device: expected packed pieces"):
        workload.bind(TRANSFERS.variant(name), stubbed(TRANSFERS, name))


def test_both_directions_at_once_move_every_piece_both_ways(workload: Any) -> None:
    workload.prepare(move(5000, 1, "both"))
    operation = workload.bind(TRANSFERS.variant("pinned_loop"), stubbed(TRANSFERS, "pinned_loop"))
    assert outcome(operation) is None
    for target in operation.targets:
        target.poison()
        assert operation.check() is not None
        operation.launch(0)
    submit_s, host_s = operation.launcher.time_launch(0, 0, 0)
    assert 0 <= submit_s <= host_s


def test_a_step_by_the_cpu_changes_the_data_in_place(workload: Any) -> None:
    workload.prepare(move(4096, 1, "in_place"))
    name = "pinned_step_on_host"
    operation = workload.bind(TRANSFERS.variant(name), stubbed(TRANSFERS, name))
    for _ in range(2):
        assert outcome(operation) is None
    (seconds,) = operation.own_samples(0, 1)["step_time"]
    assert seconds > 0
    operation.launch(0)
    assert operation.check() is not None  # a second step on the same data
