"""The result of a step of work on the data; round_trip.h and step.h compute the same."""

from __future__ import annotations

import numpy as np

from kernels.common.arrays import Bytes

FACTOR, TERM = 1664525, 1013904223
"""One step maps a 32-bit word to word * FACTOR + TERM."""


def worked_on(payload: Bytes, rounds: int) -> Bytes:
    """`payload`, whole 32-bit words, after `rounds` steps of work."""
    factor, term = 1, 0
    for _ in range(rounds):
        factor, term = factor * FACTOR % 2**32, (term * FACTOR + TERM) % 2**32
    words = payload.view(np.uint32) * np.uint32(factor) + np.uint32(term)
    return words.view(np.uint8)
