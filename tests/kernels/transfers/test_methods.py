"""The host code of the transfers' variants, with a CUDA runtime that copies immediately."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels.device import outcome
from tests.kernels.stubbed import stubbed
from tests.kernels.transfers.fake import TRANSFERS, move

HOST_METHODS = [
    *("pinned_loop", "pinned_packed", "pinned_batch"),
    *(pytest.param(name, marks=pytest.mark.long) for name in ("pinned_2d", "pinned_graph")),
]


@pytest.mark.parametrize("name", HOST_METHODS)
def test_host_methods_move_every_piece(workload: Any, name: str) -> None:
    module = stubbed(TRANSFERS, name)
    assert module.memory == "pinned"
    for direction in ("h2d", "d2h"):
        for size, count in ((1, 1), (7, 9), (4096, 3), (5000, 40)):
            workload.prepare(move(size, count, direction))
            operation = workload.bind(TRANSFERS.variant(name), module)
            for _ in range(2):
                assert outcome(operation) is None
            assert operation.own_samples(0, 1) == {}


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 0}, "size: expected at least 1, got 0"),
        ({"count": 0}, "count: expected at least 1, got 0"),
        ({"pitch": 7}, "pitch: expected at least the size, got 7"),
        ({"blocks": -1}, "blocks: expected at least 0, got -1"),
        ({"host": 0}, "host: expected an address, got 0"),
    ],
)
def test_bindings_reject_invalid_arguments(change: dict[str, int], message: str) -> None:
    arguments = {"host": 16, "device": 16, "size": 8, "pitch": 8} | change
    with pytest.raises(ValueError, match=message):
        stubbed(TRANSFERS, "pinned_loop").bind(**arguments)
