"""Only a GPU can show that all layers of a step get their rows, and that a fault is found."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.study import Variant
from analysis.toolchain.peers import unusable
from tests.compiled import gpu_module
from tests.conformance.binding import bound, outcome
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

STUDY = STUDIES["decode_step"]
POOL_MIB = 640
"""Beyond the reach of the TLB: from a smaller pool, CPU threads pack nothing."""


def small_step(variant: Variant, **values: Any) -> Any:
    pytest.importorskip("torch")
    if reason := unusable(variant):
        pytest.skip(reason)
    values = {"requests": 3, "hits": 60, "pool_mib": POOL_MIB, "width": 256, **values}
    module = gpu_module(STUDY, variant.name)
    return bound(STUDY, variant, module, values, layers=5, largest_pool_mib=POOL_MIB)


@pytest.mark.parametrize("schedule", ["inline", "beside_layer", "beside_products"])
@pytest.mark.parametrize("variant", STUDY.variants, ids=lambda variant: variant.name)
def test_every_step_is_right(variant: Variant, schedule: str, stream: int) -> None:
    operation = small_step(variant, schedule=schedule)
    assert [outcome(operation, stream) for _ in range(20)] == [None] * 20
    operation.own_samples(stream, 2)
    assert outcome(operation, stream) is None


@pytest.mark.parametrize("name", ["table_spread", "few_blocks", "both_on_request"])
def test_a_step_of_one_request_is_right(name: str, stream: int) -> None:
    operation = small_step(STUDY.variant(name), requests=1, schedule="inline", hits=99)
    assert [outcome(operation, stream) for _ in range(5)] == [None] * 5


def test_faults_are_found(stream: int) -> None:
    operation = small_step(STUDY.variant("few_blocks"), schedule="inline")
    assert outcome(operation, stream) is None
    arrays = operation.inputs.arrays
    slot = int(arrays["out"][2, 0, 7])
    hot = arrays["hot"][2].view(-1, arrays["hot"].shape[3])
    hot[slot, 5] ^= 1
    assert operation.check() == "layer 2, request 0, id 7: expected the bytes of its row"
    hot[slot, 5] ^= 1
    arrays["rows"][2, 1] += 1 << 30  # rows that no step has held
    assert "fetched rows: expected" in operation.check()
    arrays["out"][0, 0, 0] = arrays["out"][0, 0, 1]
    assert "different ones" in operation.check()
    arrays["out"][0, 0, 0] = arrays["rows"].shape[2]
    assert "another's" in operation.check()
