"""Every variant whose kernels are emulated: bound to memory of the host, launched, checked."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from analysis.measure.cell import Operation
from analysis.study import Variant
from kernels.common.arrays import Bytes
from tests.conformance.binding import outcome
from tests.conformance.emulated import bound, emulated
from tests.kernels import cuda
from tests.kernels.peers import fake_torch
from tests.repository import STUDIES

VARIANTS = [pytest.param(*pair, id=f"{pair[0]}-{pair[1].name}") for pair in emulated()]


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[cuda.Cuda]:
    fake_torch.install(monkeypatch)
    yield cuda.install(monkeypatch)
    gc.collect()  # so that memory is freed where it was allocated


@pytest.mark.parametrize(("study", "variant"), VARIANTS)
def test_a_launch_is_right_and_none_is_not(study: str, variant: Variant) -> None:
    operation = bound(study, variant)
    for _ in range(2):
        assert outcome(operation) is None
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


SPOILS: tuple[Callable[[Bytes, Bytes, np.ndarray], None], ...]
SPOILS = (one_bit, last_byte_missing, byte_behind, byte_between)


def spoiled(cuda: cuda.Cuda, operation: Operation, spoil: Callable[..., None]) -> str | None:
    """The result of the check after a launch and a fault in each memory that it has written.

    A check may also stop at a number that is no place: that ends its round.
    """
    operation.poison()
    before = {at: memory.copy() for at, memory in cuda.held.items()}
    operation.launch(0)
    for at, old in before.items():
        written = np.flatnonzero(cuda.held[at] != old)
        if written.size:
            spoil(cuda.held[at], old, written)
    try:
        return operation.check()
    except IndexError as error:
        return str(error)


@pytest.mark.parametrize(("study", "variant"), VARIANTS)
def test_a_spoiled_output_fails(fake: cuda.Cuda, study: str, variant: Variant) -> None:
    for spoil in SPOILS:
        assert spoiled(fake, bound(study, variant), spoil) is not None, spoil.__name__
