"""The workload and the steps of the GPU's tests, with a variant in Python and no GPU."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernels.common import shared_pool
from kernels.hot_set.comparison import Source
from kernels.hot_set.traces import Shape
from tests.kernels.cuda import array_of, install
from tests.kernels.hot_set import on_gpu
from tests.kernels.hot_set.faulty import Fault
from tests.kernels.hot_set.faulty import Variant as PythonVariant

STEPS = 80
SHAPE = Shape(requests=2, topk=24, slots=40, context_rows=128, steps=STEPS)
SETTING = on_gpu.Setting("kept_0.5", SHAPE, pool_mib=1)
EXACT = on_gpu.HOT_SET.variant("v3_block_per_request")


class PythonSteps:
    """All layers and requests, with the interface of bindings.cpp."""

    def __init__(self, fault: Fault | None, arguments: dict[str, Any]) -> None:
        self._arrays = arguments
        self._ids = array_of(arguments["ids"])[0]
        places = array_of(arguments["places"])
        slots, row_bytes = arguments["hot"].shape[2:]
        self._variants = {
            at: PythonVariant(slots, row_bytes, self._source(places[at]), fault)
            for at in np.ndindex(places.shape[:2])
        }

    def _source(self, places: np.ndarray) -> Source:
        return Source(places.copy(), self._arrays["pool"], on_gpu.WORKLOADS.POISON)

    def advance(self, stream: int, index: int, number: int) -> None:
        del stream, number
        self._ids = array_of(self._arrays["ids"])[index]

    def launch(self, stream: int) -> None:
        del stream
        for at, variant in self._variants.items():
            got = variant.step(self._ids[at[1]])
            for name, value in (("out", got.slots), ("rows", got.rows), ("hot", got.buffer)):
                array_of(self._arrays[name])[at] = value
            array_of(self._arrays["last_used"])[at] = got.last_used

    def publish(self) -> None:
        """All state is in the arrays."""

    def close(self) -> None:
        """There is nothing to end."""


def first_difference(monkeypatch: pytest.MonkeyPatch, fault: Fault | None) -> str | None:
    install(monkeypatch)
    monkeypatch.setattr(on_gpu.WORKLOADS, "_SHARED", shared_pool.Shared())
    pool = np.random.default_rng(0).integers(0, 256, 2**20, np.uint8)
    module = SimpleNamespace(bind=lambda **arguments: PythonSteps(fault, arguments))
    return on_gpu.first_difference(on_gpu.bound(EXACT, module, pool, SETTING), 0, STEPS)


def test_a_right_variant_agrees_in_every_step_of_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    assert on_gpu.layers_of(EXACT) == on_gpu.GRAPH_LAYERS
    assert first_difference(monkeypatch, None) is None


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("evicts the higher id of a tie", "layer 0, request 0, .*row"),
        ("copies half of a row", "layer 0, request 0, slot .*byte"),
        ("forgets that a hit was used", "layer 0, request 0, row .*last use"),
        ("leaves the bytes of the old row", "step [1-9]"),
    ],
)
def test_the_first_wrong_step_is_named(
    fault: Fault, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = first_difference(monkeypatch, fault)
    assert wrong is not None
    assert re.search(message, wrong), wrong


def test_a_long_run_repeats_the_steps_after_the_warm_up() -> None:
    made_current: list[int] = []
    bound = SimpleNamespace(advance=lambda stream, index, number: made_current.append(index))
    inputs: Any = SimpleNamespace(
        trace=SimpleNamespace(warmup_steps=2), shape=SimpleNamespace(steps=3)
    )
    steps = on_gpu.WORKLOADS.HotSetSteps(bound, inputs, EXACT)
    for _ in range(9):
        steps.advance(0)
    assert made_current == [0, 1, 2, 3, 4, 2, 3, 4, 2]
