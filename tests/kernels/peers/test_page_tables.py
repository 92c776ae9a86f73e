"""The cost of a row over NVLink is found again in times that it makes."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

TABLES = load_python(STUDIES["peers"], "page_tables")
SIZES = np.array([16, 48, 64, 112, 128, 144, 256, 320, 448, 656, 1024])


def test_units_are_those_that_neighbouring_rows_touch() -> None:
    assert TABLES.units(16) == [1, 1, 1]
    assert TABLES.units(48) == [2, 1.25, 1]
    assert TABLES.units(128) == [4, 1, 1]
    assert TABLES.units(656) == [21, 6, 1]


def test_costs_predict_the_sizes_that_were_held_back() -> None:
    made = np.array([0.08e-9, 0.03e-9, 0.02e-9])
    seconds = np.array([TABLES.units(int(size)) for size in SIZES]) @ made
    found, errors = TABLES.costs(SIZES, seconds)
    assert found == pytest.approx(made)
    assert errors == pytest.approx(np.zeros(5), abs=1e-9)
    seconds[3] *= 1.25
    found, errors = TABLES.costs(SIZES, seconds)
    assert found == pytest.approx(made), "a size that is held back does not enter the fit"
    assert errors[1] == pytest.approx(-0.2)
