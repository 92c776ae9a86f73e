"""The study's workload without a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kernels.transfers.fake import fake_workload


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch) -> Any:
    return fake_workload(monkeypatch)
