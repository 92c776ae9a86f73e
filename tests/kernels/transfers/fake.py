"""The transfers' workload without a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.toolchain.modules import load_python
from tests.kernels.cuda import install
from tests.kernels.moves import drawn
from tests.repository import STUDIES

TRANSFERS = STUDIES["transfers"]
WORKLOADS = load_python(TRANSFERS, "workload")
PRICE, WORK = (load_python(TRANSFERS, name) for name in ("price", "work"))


def fake_workload(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The study's workload, all of its memory in plain host memory."""
    install(monkeypatch)
    return WORKLOADS.Workload({"work_rounds": 3}, drawn())
