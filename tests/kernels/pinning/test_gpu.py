"""Pinning on a GPU: copies of real registrations, and calls of a neighbour."""

from typing import Any

import pytest

from tests.compiled import gpu_module
from tests.conformance.binding import outcome
from tests.kernels.pinning.test_pinning import PINNING, bound, case

pytestmark = pytest.mark.gpu
CALLS = [("chunks", {"beside": "thread", "calls": one}) for one in ("copy", "launch", "malloc")]


@pytest.mark.parametrize(("name", "values"), [*((n, {}) for n in PINNING.variant_names), *CALLS])
def test_pinned_memory_is_copied_rightly(name: str, values: Any, stream: int) -> None:
    operation = bound(name, case(13, **values), built=gpu_module(PINNING, name))
    assert outcome(operation) is None and operation.own_samples(0, 1)
