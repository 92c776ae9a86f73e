"""Every variant that can be launched without a GPU: bound to host memory, launched, checked."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from analysis.measure.cell import Operation
from analysis.study import Variant
from kernels.common.arrays import Bytes
from tests.conformance.binding import outcome
from tests.conformance.emulated import EMULATED, VARIANTS, bound, directions
from tests.kernels.cuda import Cuda
from tests.repository import STUDIES


@pytest.mark.parametrize(("study", "variant"), VARIANTS)
def test_a_launch_is_right_and_none_is_not(host: Cuda, study: str, variant: Variant) -> None:
    for small in range(len(EMULATED[study].cases)):
        for values in directions(variant):
            operation = bound(study, variant.name, values, small=small)
            assert [outcome(operation) for _ in range(2)] == [None, None]
            assert {*operation.own_samples(0, 1)} <= {*STUDIES[study].metrics}
            operation.poison()
            assert operation.check() is not None


def one_bit(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    memory[written[len(written) // 2]] ^= 1


def last_byte_missing(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    memory[written[-1]] = before[written[-1]]


def byte_behind(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    memory[min(int(written[-1]) + 1, len(memory) - 1)] ^= 0x5A


def byte_between(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    gaps = np.flatnonzero(np.diff(written) > 1)
    memory[written[gaps[-1]] + 1 if gaps.size else written[0]] ^= 0x5A


def spoiled(cuda: Cuda, operation: Operation, spoil: Callable[..., None]) -> list[str | None]:
    """The results of checks after a launch and a fault in one of the memories that it has written.

    A check may also stop at a number that is no place: that ends its round.
    """
    operation.poison()
    before = {at: memory.copy() for at, memory in cuda.held.items()}
    operation.launch(0)
    written = {at: np.flatnonzero(cuda.held[at] != old) for at, old in before.items()}
    found: list[str | None] = []
    for at in (at for at, places in written.items() if places.size):
        right = cuda.held[at].copy()
        spoil(cuda.held[at], before[at], written[at])
        try:
            found.append(operation.check())
        except IndexError as error:
            found.append(str(error))
        cuda.held[at][:] = right
    return found


@pytest.mark.parametrize(("study", "variant"), VARIANTS)
def test_a_spoiled_output_fails(host: Cuda, study: str, variant: Variant) -> None:
    # Only in memory of CUDA's, the spoiled output is seen.
    is_held = variant.name.startswith(("pinned", "write_combined"))
    values = directions(variant)[0 if is_held else -1]
    for spoil in (one_bit, last_byte_missing, byte_behind, byte_between):
        found = spoiled(host, bound(study, variant.name, values), spoil)
        assert found and None not in found, spoil.__name__
