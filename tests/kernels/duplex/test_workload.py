"""Both directions at once: every byte of both transfers is checked."""

from __future__ import annotations

from typing import Any

import pytest

from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.kernels.cuda import install, outcome
from tests.kernels.moves import drawn
from tests.kernels.stubbed import stubbed
from tests.repository import STUDIES

DUPLEX = STUDIES["duplex"]


@pytest.fixture
def workload(monkeypatch: pytest.MonkeyPatch) -> Any:
    install(monkeypatch)
    return load_python(DUPLEX, "workload").Workload(DUPLEX.constants, drawn())


@pytest.mark.parametrize("name", ["in_turn", "at_once"])
def test_the_bytes_of_both_directions_arrive(workload: Any, name: str) -> None:
    for size, count in ((1, 1), (7, 9), (4096, 33)):
        workload.prepare(Case({"size": size, "count": count}, 2 * size * count, "default"))
        operation = workload.bind(DUPLEX.variant(name), stubbed(DUPLEX, name))
        for _ in range(2):
            assert outcome(operation) is None
        assert len(operation.targets) == 2
        for target in operation.targets:
            target.poison()
            assert operation.check() is not None
            operation.launch(0)
        assert operation.own_samples(0, 1) == {}


def test_pieces_are_in_no_order_but_in_the_same_on_both_sides(workload: Any) -> None:
    workload.prepare(Case({"size": 64, "count": 500}, 64000, "default"))
    assert workload.on_host is workload.on_device
    offsets = workload.on_host.offsets.tolist()
    assert offsets != sorted(offsets) == list(range(0, 64 * 500, 64))


def test_a_variant_needs_both_transfers() -> None:
    with pytest.raises(ValueError, match="landing: expected pieces to the device"):
        stubbed(DUPLEX, "at_once").bind(16, 16, size=8, pitch=8)
