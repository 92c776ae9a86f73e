"""Both directions on a GPU: every byte arrives, and the experiments take their figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.study import Case, CaseValue, Study
from analysis.toolchain.modules import load_python
from tests.compiled import gpu_module, study_with_fault
from tests.kernels.cuda import outcome
from tests.kernels.moves import drawn
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

DUPLEX = STUDIES["duplex"]


def bound(study: Study, name: str, size: int, count: int, **more: CaseValue) -> Any:
    workload = load_python(DUPLEX, "workload").Workload(DUPLEX.constants, drawn())
    workload.prepare(Case({"size": size, "count": count, **more}, 2 * size * count, "default"))
    return workload.bind(study.variant(name), gpu_module(study, name))


@pytest.mark.parametrize("name", DUPLEX.variant_names)
def test_the_bytes_of_both_directions_arrive(name: str) -> None:
    for size, count in ((48, 1000), (5001, 9), (4096, 1024)):
        operation = bound(DUPLEX, name, size, count)
        for _ in range(2):
            assert outcome(operation) is None


def test_the_check_finds_a_copy_out_that_is_too_short(tmp_path: Path) -> None:
    right = "pieces.landing, pieces.source, static_cast<size_t>(pieces.bytes())"
    wrong = study_with_fault(DUPLEX, tmp_path, "copies.h", right, right + " - 1")
    assert outcome(bound(wrong, "gather_at_once", 4096, 9)) is not None


def test_the_experiments_take_all_their_figures(stream: int) -> None:
    operation = bound(DUPLEX, "neighbours", 4096, 1024, blocks=4)
    assert outcome(operation) is None
    found = operation.own_samples(stream, 1)
    assert set(found) == set(DUPLEX.metrics) - {"host_time"}
    assert all(0 < share < 2 for name in found if "_kept_by_" in name for share in found[name])
    assert all(1e-7 < time < 1e-4 for name in found if "latency" in name for time in found[name])
