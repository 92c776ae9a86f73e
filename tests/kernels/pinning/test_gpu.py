"""Pinning on a GPU: copies of real registrations, and calls of a neighbour."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.measure.memory import DeviceArray
from tests.compiled import gpu_module
from tests.conformance.binding import outcome
from tests.kernels.pinning.test_pinning import HUGE_PAGE, PINNING, bound, case

pytestmark = pytest.mark.gpu
CALLS = [("chunks", {"beside": "thread", "calls": one}) for one in ("copy", "launch", "malloc")]


@pytest.mark.parametrize(("name", "values"), [*((n, {}) for n in PINNING.variant_names), *CALLS])
def test_pinned_memory_is_copied_rightly(name: str, values: Any, stream: int) -> None:
    operation = bound(name, case(13, **values), built=gpu_module(PINNING, name))
    assert outcome(operation) is None and operation.own_samples(0, 1)


@pytest.mark.parametrize("name", ["chunks", "touched_by_threads", "virtual_memory"])
def test_only_registrations_split_a_copy(name: str, stream: int) -> None:
    pinned = gpu_module(PINNING, name).Pinned(3 * HUGE_PAGE, HUGE_PAGE, 2)
    device = DeviceArray((2,), np.uint8, "device")
    status = pinned.copy_as_one(device.pointer, HUGE_PAGE - 1, 2, True, 0)
    assert (status != 0) == (name == "chunks")
