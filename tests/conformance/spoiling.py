"""Outputs that are spoiled, whatever the study: its memory is CUDA's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from analysis.measure.cell import Operation
from kernels.common.arrays import Bytes
from tests.kernels.cuda import Cuda

Spoil = Callable[[Bytes, Bytes, np.ndarray], None]


def one_bit(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    memory[written[len(written) // 2]] ^= 1


def last_byte_missing(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    memory[written[-1]] = before[written[-1]]


def byte_behind(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    end = min(int(written[-1]) + 1, len(memory) - 1)
    memory[end] ^= 0x5A


def byte_between(memory: Bytes, before: Bytes, written: np.ndarray) -> None:
    gaps = np.flatnonzero(np.diff(written) > 1)
    memory[written[gaps[-1]] + 1 if gaps.size else written[0]] ^= 0x5A


SPOILS: dict[str, Spoil] = {
    "one bit": one_bit,
    "the last byte is missing": last_byte_missing,
    "a byte is written behind": byte_behind,
    "a byte is written between": byte_between,
}


def launched(cuda: Cuda, operation: Operation, spoil: Spoil) -> str | None:
    """The result of the check after a launch and a fault in each memory that it has written."""
    operation.poison()
    before = {at: memory.copy() for at, memory in cuda.held.items()}
    operation.launch(0)
    for at, old in before.items():
        written = np.flatnonzero(cuda.held[at] != old)
        if written.size:
            spoil(cuda.held[at], old, written)
    return operation.check()
