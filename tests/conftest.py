"""What tests share: those that need a GPU are left out where there is none, and this is said."""

from __future__ import annotations

import pytest

from analysis.gpu import GpuError, open_gpu


def has_gpu() -> bool:
    try:
        with open_gpu(0):
            return True
    except GpuError:
        return False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    needing = [item for item in items if item.get_closest_marker("gpu")]
    if needing and not has_gpu():
        config.hook.pytest_deselected(items=needing)
        items[:] = [item for item in items if item not in needing]
