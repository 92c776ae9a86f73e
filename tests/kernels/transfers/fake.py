"""The transfers' workload without a GPU, and made-up results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analysis.study import Case, Variant
from analysis.toolchain.modules import load_python
from tests.kernels.cuda import install
from tests.kernels.moves import drawn
from tests.repository import STUDIES
from tests.synthetic import write_machine

TRANSFERS = STUDIES["transfers"]
PRICE, WORK = (load_python(TRANSFERS, name) for name in ("price", "work"))


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The study's workload, all of its memory in plain host memory."""
    install(monkeypatch)
    return load_python(TRANSFERS, "workload").Workload({"work_rounds": 3}, drawn())


def plausible(variant: Variant, case: Case, metric: str) -> float:
    """A time per piece, or once for a kernel, and the rate of the link."""
    size, count = int(case.values.get("size", 1)), int(case.values.get("count", 1))
    calls = 1 if "gather" in variant.name else count
    return 5e-6 + 1e-6 * calls + size * count / 50e9


def results_of(root: Path) -> Path:
    """Results of a made-up machine that has measured few variants."""
    names = ("loop", "packed", "list_loop", "list_gather")
    variants = [TRANSFERS.variant(f"pinned_{name}") for name in names]
    settings: Any = {"rounds": 4, "seconds": plausible, "grid": "default"}
    write_machine(root / "results", "box", TRANSFERS, variants=variants, **settings)
    return root / "results"
