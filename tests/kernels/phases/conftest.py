"""Fixtures of the allocators' tests."""

from __future__ import annotations

import pytest

from tests.kernels.phases.modules import Host, built


@pytest.fixture
def final() -> Host:
    """The allocator that is finally ours, over a source that only counts."""
    return Host(built("p4_final"))


@pytest.fixture(params=["p4_final", "p5_dropin"])
def ours(request: pytest.FixtureRequest) -> Host:
    """Each of those that know streams, over a source that only counts."""
    return Host(built(request.param))
