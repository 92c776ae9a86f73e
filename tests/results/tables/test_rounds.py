"""Figures by round, beside the speed of the host."""

from __future__ import annotations

import math

import pytest

from analysis.results.tables.rounds import ROUND_COLUMNS, rounds
from tests.results.tables.rows import rounds as rounds_of
from tests.results.tables.rows import table
from tests.synthetic import COPY

VARIANT = COPY.variants[0]
SHOWN = COPY.shown_case(VARIANT).id


def test_one_row_per_round_of_shown_figures() -> None:
    measured = [
        *rounds_of(VARIANT.name, [1.0, 2.0], case=SHOWN, core_copies=2e10),
        *rounds_of(VARIANT.name, [3.0, 4.0], case=SHOWN, sample=1, core_copies=2e10),
        *rounds_of(VARIANT.name, [7.0], case="rows=5", core_copies=2e10),
        *rounds_of(VARIANT.name, [8.0], case=SHOWN, metric="sms_used", unit="1"),
    ]
    found = rounds(table(measured), {"copy": COPY})
    assert list(found.columns) == list(ROUND_COLUMNS)
    assert list(found["median"]) == pytest.approx([2.0, 3.0])
    assert list(found["round"]) == [0, 1]
    assert set(found["core_copies"]) == {2e10}


@pytest.mark.parametrize(
    "changed", [{"core_copies": math.nan}, {"stale": True}, {"case": "rows=5"}]
)
def test_conditions_without_a_host_have_no_row(changed: dict[str, object]) -> None:
    kept = {"case": SHOWN, "core_copies": 2e10} | changed
    assert rounds(table(rounds_of(VARIANT.name, [1.0, 2.0], **kept)), {"copy": COPY}).empty


def test_no_rows_without_samples() -> None:
    assert list(rounds(table(), {"copy": COPY}).columns) == list(ROUND_COLUMNS)
