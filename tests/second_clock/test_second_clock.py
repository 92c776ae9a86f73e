"""The engine's clocks agree with a second one."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.toolchain.modules import load_python
from tests.compiled import ARCH, module, toolchain
from tests.repository import STUDIES
from tests.second_clock.__main__ import KNOWN, compare_all, table
from tests.second_clock.cells import CELLS, TOLERANCE
from tests.second_clock.clock import SecondClock, build


@pytest.mark.gpu
def test_the_clocks_agree() -> None:
    rows = compare_all(KNOWN)
    assert all(row.agrees for row in rows), "\n".join(table(rows))


def test_cells_are_of_known_variants_and_metrics() -> None:
    assert len(set(CELLS)) == 12
    for timed in CELLS:
        study = STUDIES[timed.study]
        cell = timed.cell(study)
        assert cell.case.id == timed.case
        assert set(cell.case.values) == set(cell.variant.cases[0].values)
        assert set(timed.metrics) <= set(study.metrics) & set(TOLERANCE)


@pytest.mark.long
def test_it_replays_a_tape_on_an_allocator_of_a_module(tmp_path: Path) -> None:
    study = STUDIES["phases"]
    built = module(study, study.variant("p4_final"))
    allocator = built.Allocator(built.HostSource(1 << 40))
    clock = SecondClock(build(toolchain(), ARCH, tmp_path))
    pattern = load_python(study, "workload").PATTERNS["transformer_training"]()
    assert 1e-9 < clock.allocator_time(allocator, pattern.tapes[0]) < 1e-3
    statistics = allocator.statistics()
    assert statistics["allocations"] == statistics["frees"] == len(pattern.tapes[0]) / 2
