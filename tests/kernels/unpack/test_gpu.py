"""Faults that the checked mode finds on the device."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.measure.memory import DeviceArray
from tests.compiled import gpu_module
from tests.conformance.binding import case_of
from tests.kernels.unpack.test_workload import UNPACK, WORKLOADS

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(
    ("index", "field", "value", "message"),
    [
        (5, "len", 0, "descriptor 5: no bytes"),
        (77, "src_off", 2**32 - 1, "descriptor 77: beyond the bounce buffer"),
        (3, "dst_off", 2**64 - 8, "descriptor 3: beyond the destination"),
        (127, "dst_off", WORKLOADS.GUARD + 1, "descriptor 127: overlaps another"),
        (0, "bytes", 1, "bytes: expected the sum of all lengths, 524288, got 262145"),
    ],
)
def test_the_checked_mode_finds_faults_on_the_device(
    stream: int, index: int, field: str, value: int, message: str
) -> None:
    case = case_of(UNPACK.variant("checked"), {"chunks": 2, "kib": 256}, {})
    drawn = WORKLOADS.draw_chunks(case, np.random.default_rng(0))
    plan = WORKLOADS.plan(drawn, UNPACK.constants["block_descriptors"])
    bounce = DeviceArray((plan.bounce_bytes,), np.uint8, "bounce")
    dst = DeviceArray((plan.dst_bytes,), np.uint8, "dst")
    block, position = divmod(index, 64)
    target = plan.blocks[block]
    (target if field == "bytes" else target["descriptors"][position])[field] = value
    blocks, ends = plan.blocks.view(np.uint8).reshape(-1), (bounce.nbytes, dst.pointer, dst.nbytes)
    bad = gpu_module(UNPACK, "checked").bind(blocks, plan.blocks_of_chunks, bounce.pointer, *ends)
    with pytest.raises(RuntimeError, match=message):
        bad.launch(stream)
