"""The engine's clocks agree with a second one."""

from pathlib import Path

import pytest

from tests.compiled import ARCH, toolchain
from tests.repository import STUDIES
from tests.second_clock.__main__ import compare_all
from tests.second_clock.clock import CELLS, TOLERANCE, build


@pytest.mark.gpu
def test_the_clocks_agree() -> None:
    rows = compare_all()
    assert rows["agrees"].all(), rows.to_string()


def test_cells_are_of_known_variants_and_metrics() -> None:
    for timed in CELLS:
        study = STUDIES[timed.study]
        cell = timed.cell(study)
        assert cell.case.id == timed.case
        assert set(cell.case.values) == set(cell.variant.cases[0].values)
        assert set(timed.metrics) <= set(study.metrics) & set(TOLERANCE)


@pytest.mark.long
def test_the_program_compiles(tmp_path: Path) -> None:
    assert build(toolchain(), ARCH, tmp_path).exists()
