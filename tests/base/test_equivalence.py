"""Decisions on the rows of a table: false alarms, equality that is shown, and too few runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analysis.base import equivalence

Table = list[tuple[list[float], list[float]]]

TABLES = 400
ROWS = 12


def table(random: np.random.Generator, ratio: float, sigma: float = 0.02) -> Table:
    """Rows of three and seven runs, whose sides differ by `ratio` and spread by `sigma`."""
    return [
        (
            random.lognormal(0, sigma, 3).tolist(),
            random.lognormal(math.log(ratio), sigma, 7).tolist(),
        )
        for _ in range(ROWS)
    ]


def share_of_tables(decision: str, ratio: float) -> float:
    """Share of tables in which any row gets this decision."""
    random = np.random.default_rng(1)
    found = [
        {one.decision for one in equivalence.decide(table(random, ratio))} for _ in range(TABLES)
    ]
    return sum(decision in names for names in found) / TABLES


def test_a_table_of_equal_machines_seldom_has_a_difference() -> None:
    # Four standard errors above the rate that Holm's procedure promises.
    allowed = equivalence.FALSE_ALARMS + 4 * math.sqrt(equivalence.FALSE_ALARMS / TABLES)
    assert share_of_tables(equivalence.DIFFERENT, 1.0) <= allowed


def test_a_table_of_machines_at_the_margin_seldom_has_an_equal_row() -> None:
    allowed = equivalence.FALSE_ALARMS + 4 * math.sqrt(equivalence.FALSE_ALARMS / TABLES)
    assert share_of_tables(equivalence.EQUAL, 1 + equivalence.EQUAL_WITHIN) <= allowed


def test_narrow_rows_are_decided_and_wide_ones_are_not() -> None:
    narrow = [1.0, 1.001, 0.999]
    rows = [
        (narrow, [one * 1.2 for one in narrow]),
        (narrow, narrow),
        ([1.0, 1.3, 0.8], [1.1, 0.7, 1.2]),
        (narrow[:2], narrow),
    ]
    decided = equivalence.decide(rows)
    assert [one.decision for one in decided] == [
        equivalence.DIFFERENT,
        equivalence.EQUAL,
        equivalence.UNDECIDED,
        equivalence.FEW_RUNS,
    ]
    assert decided[0].ratio == pytest.approx(1.2)
    assert decided[0].low < 1.2 < decided[0].high
    assert math.isnan(decided[3].low)


def test_a_sure_difference_below_the_margin_is_equal() -> None:
    runs = [1.0, 1.0001, 0.9999, 1.0]
    (one,) = equivalence.decide([(runs, [run * 1.02 for run in runs])])
    assert one.p_different < equivalence.FALSE_ALARMS and one.decision == equivalence.EQUAL


def test_equal_figures_of_all_runs_have_an_interval() -> None:
    (one,) = equivalence.decide([([2.0] * 3, [2.0] * 3)])
    assert one.decision == equivalence.EQUAL and one.low < 1 < one.high


def test_no_rows_have_no_decision() -> None:
    assert equivalence.decide([]) == []


def test_holm_multiplies_by_the_rows_left_and_keeps_the_order() -> None:
    assert equivalence.holm(np.array([0.04, 0.01, 0.03])) == pytest.approx([0.06, 0.03, 0.06])
