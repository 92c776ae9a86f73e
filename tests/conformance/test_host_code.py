"""Host code of variants: compiled, linked with a CUDA runtime without a GPU, and launched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compiled import use_built_library
from tests.conformance.binding import outcome
from tests.conformance.emulated import EMULATED, bound, directions
from tests.kernels.stubbed import stubbed
from tests.repository import STUDIES

ON_HOST = {
    "duplex": ("in_turn", "at_once"),
    "pool_gather": ("packed_by_cpu", "ceiling_copy_engine", "packed_past_caches", "packed_by_2"),
    "transfers": tuple(
        f"pinned_{name}" for name in ("loop", "packed", "batch", "list_loop", "list_packed", "2d")
    ),
}
"""Variants whose host code is compiled."""
LONG = {"packed_past_caches", "packed_by_2", "pinned_2d"}
VALUES: dict[str, list[dict[str, Any]]] = {
    "pinned_loop": [{"direction": "both", "count": 1}, {}],
    "pinned_list_packed": [{"threads": 1}, {"threads": 5}],
}


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("study", "name"),
    [
        pytest.param(study, name, marks=[pytest.mark.long] if name in LONG else [])
        for study, names in ON_HOST.items()
        for name in names
    ],
)
def test_host_code_moves_every_byte(study: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_built_library(monkeypatch)
    module, variant = stubbed(STUDIES[study], name), STUDIES[study].variant(name)
    for small in range(len(EMULATED[study].cases)):
        for value in (way | one for way in directions(variant) for one in VALUES.get(name, [{}])):
            operation = bound(study, name, value, module, small=small)
            for _ in range(3):
                assert outcome(operation) is None
                assert operation.check() is None
                if variant.host_work and operation.settle:
                    operation.settle()
            for part in getattr(operation, "targets", [operation]):
                part.poison()
                assert operation.check() is not None
                operation.launch(0)
