"""What tests share: those that need a GPU are left out where there is none, and this is said."""

from __future__ import annotations

import pytest

from analysis.gpu import GpuError, open_gpu

from .allocators import Allocators, Host, builds_in


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


@pytest.fixture(scope="session")
def allocators(tmp_path_factory: pytest.TempPathFactory) -> Allocators:
    """Loads an allocator's module by its name, built when it is first asked for."""
    return builds_in(tmp_path_factory.mktemp("allocators"))


@pytest.fixture
def final(allocators: Allocators) -> Host:
    """The allocator that is finally ours, over a source that only counts."""
    return Host(allocators("p4_final"))
