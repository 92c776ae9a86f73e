"""The comparison of an output and its guard with the expected bytes."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.common.outputs import POISON, wrong_byte, wrong_row

EXPECTED = np.arange(4, dtype=np.uint32)
SIZE = EXPECTED.nbytes


def landed(**changes: int) -> np.ndarray:
    """The expected bytes and 8 bytes of guard, with some bytes changed, by their offset."""
    output = np.concatenate([EXPECTED.view(np.uint8), np.full(8, POISON, np.uint8)])
    for offset, value in changes.items():
        output[int(offset.removeprefix("at_"))] = value
    return output


def test_the_expected_bytes_and_an_unchanged_guard_pass() -> None:
    assert wrong_byte(landed(), EXPECTED) is None
    assert wrong_byte(landed()[:SIZE], EXPECTED) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"at_4": 9}, "byte 4: expected 1, got 9"),
        ({"at_15": 7, "at_16": 0}, "byte 15: expected 0, got 7"),
        ({"at_16": 0}, "byte 16, after the output, was overwritten"),
        ({"at_23": 0}, "byte 23, after the output, was overwritten"),
    ],
)
def test_the_first_wrong_byte_is_reported(changes: dict[str, int], message: str) -> None:
    assert wrong_byte(landed(**changes), EXPECTED) == message


def test_the_first_wrong_byte_of_rows_is_reported() -> None:
    expected = np.arange(12, dtype=np.uint8).reshape(4, 3)
    got = expected.copy()
    assert wrong_row(got, expected) is None
    got[2, 1] = got[3, 0] = 99
    assert wrong_row(got, expected) == "destination row 2, byte 1: expected 7, got 99"
    assert wrong_row(got[2:], expected[2:], first_row=2) == wrong_row(got, expected)
