"""Fixtures of all studies' variants."""

from __future__ import annotations

import pytest

from kernels.common import shared_pool
from tests.conformance.emulated import draw_few
from tests.kernels.cuda import Cuda
from tests.kernels.cuda import fake as fake
from tests.kernels.peers import fake_torch


@pytest.fixture
def host(fake: Cuda, monkeypatch: pytest.MonkeyPatch) -> Cuda:
    """A host with few cores, without a GPU, and with a stand-in for PyTorch."""
    fake_torch.install(monkeypatch)
    draw_few(monkeypatch)
    monkeypatch.setattr(shared_pool, "cores", lambda: [0, 1, 0])
    return fake
