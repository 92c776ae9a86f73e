"""The check of the fill: results that it accepts, and results that it rejects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.measure.cell import PythonLauncher
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

WORKLOAD = load_python(STUDIES["storage_fill"], "workload")
COUNT = 16
VALUE = np.float32(1.5)


class HostArray:
    """Stands in for a device array."""

    def __init__(self) -> None:
        self.values = np.zeros(COUNT + WORKLOAD.GUARD, np.float32)

    def fill(self, byte: int) -> None:
        self.values.view(np.uint8)[:] = byte

    def get(self) -> np.ndarray:
        return self.values.copy()


def filled(write: Any) -> str | None:
    array = HostArray()
    operation = WORKLOAD.Filled(array, COUNT, VALUE, PythonLauncher(write))
    operation.poison()
    operation.launch(array.values)
    wrong: str | None = operation.check()
    return wrong


def test_a_filled_square_passes() -> None:
    def write(values: np.ndarray) -> None:
        values[:COUNT] = VALUE

    assert filled(write) is None


@pytest.mark.parametrize(
    ("count", "message"),
    [(0, "element 0"), (COUNT - 1, f"element {COUNT - 1}"), (COUNT + 1, "after the square")],
)
def test_too_few_or_too_many_elements_are_reported(count: int, message: str) -> None:
    def write(values: np.ndarray) -> None:
        values[:count] = VALUE

    assert message in (filled(write) or "")
