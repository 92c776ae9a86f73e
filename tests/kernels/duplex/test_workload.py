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


@pytest.mark.parametrize("name", ["in_turn", "at_once"])
def test_the_bytes_of_both_directions_arrive(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    install(monkeypatch)
    workload: Any = load_python(DUPLEX, "workload").Workload(DUPLEX.constants, drawn())
    for size, count in ((1, 1), (7, 9), (4096, 33)):
        workload.prepare(Case({"size": size, "count": count}, 2 * size * count, "default"))
        operation = workload.bind(DUPLEX.variant(name), stubbed(DUPLEX, name))
        assert [outcome(operation) for _ in range(2)] == [None, None]
        assert len(operation.targets) == 2
        for target in operation.targets:
            target.poison()
            assert operation.check() is not None
            operation.launch(0)
    assert workload.on_host is workload.on_device
    offsets = workload.on_host.offsets.tolist()
    assert offsets != sorted(offsets) == list(range(0, 4096 * 33, 4096))
    with pytest.raises(ValueError, match="landing: expected pieces to the device"):
        stubbed(DUPLEX, name).bind(16, 16, size=8, pitch=8)
