"""Every variant whose kernels are emulated: bound to memory of the host, launched, checked."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from analysis.study import Variant
from tests.conformance.emulated import bound, emulated
from tests.conformance.spoiling import SPOILS, launched
from tests.kernels import cuda
from tests.kernels.peers import fake_torch
from tests.repository import STUDIES

VARIANTS = [pytest.param(*pair, id=f"{pair[0]}-{pair[1].name}") for pair in emulated()]


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[cuda.Cuda]:
    fake_torch.install(monkeypatch)
    yield cuda.install(monkeypatch)
    gc.collect()  # so that memory is freed where it was allocated


@pytest.mark.parametrize(("study", "variant"), VARIANTS)
def test_a_launch_is_right_and_none_is_not(study: str, variant: Variant) -> None:
    operation = bound(study, variant)
    for _ in range(2):
        operation.poison()
        assert operation.check() is not None
        operation.launch(0)
        assert operation.check() is None
    assert {*operation.own_samples(0, 1)} <= {*STUDIES[study].metrics}


@pytest.mark.parametrize(("study", "variant"), VARIANTS)
def test_a_spoiled_output_fails(fake: cuda.Cuda, study: str, variant: Variant) -> None:
    for name, spoil in SPOILS.items():
        assert launched(fake, bound(study, variant), spoil) is not None, name
