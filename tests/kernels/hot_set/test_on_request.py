"""Only a GPU can show that variants whose misses the CPU packs are right in every step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import ROOT
from analysis.study import Case, Study
from analysis.toolchain.modules import load_python
from tests.compiled import gpu_module, study_with_fault
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

HOT_SET = STUDIES["hot_set"]
POOL_MIB = 1024
"""Beyond the reach of the TLB, so that the CPU packs."""
LATE = "miss_fetch.h", "#define PATIENCE_CYCLES 2000000", "#define PATIENCE_CYCLES 0"


def bound(study: Study, name: str, **more: int) -> Any:
    values = {"requests": 3, "topk": 256, "slots": 512, "misses": 90, "pool_mib": POOL_MIB}
    case = Case({**values, "layout": "scattered", **more}, 90 * 656, "default")
    workload = load_python(study, "workload").Workload
    constants = {**study.constants, "largest_pool_mib": POOL_MIB}
    inputs = workload(constants, np.random.default_rng(0)).prepare(case)
    return inputs.bind(study.variant(name), gpu_module(study, name))


def check_steps(operation: Any, stream: int) -> None:
    from analysis.measure.memory import synchronize

    for _ in range(20):
        operation.poison()
        operation.launch(stream)
        synchronize(stream)
        assert operation.check() is None


@pytest.mark.parametrize("share", [{}, {"share_32nds": 0}, {"share_32nds": 16}])
@pytest.mark.parametrize("name", ["packed_on_request", "both_on_request", "met_on_request"])
def test_every_step_is_right(name: str, share: dict[str, int], stream: int) -> None:
    check_steps(bound(HOT_SET, name, **share), stream)


def test_rows_of_late_threads_are_read_in_place(tmp_path: Path, stream: int) -> None:
    (tmp_path / "pool_gather").symlink_to(ROOT / "kernels" / "pool_gather")
    study = study_with_fault(HOT_SET, tmp_path, *LATE)
    check_steps(bound(study, "packed_on_request"), stream)


def test_a_graph_of_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="layers: expected 1, because a graph"):
        bound(HOT_SET, "both_on_request", layers=2)
