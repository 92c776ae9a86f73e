"""Host code of variants: compiled, linked with a CUDA runtime without a GPU, and launched."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compiled import use_built_library
from tests.conformance.binding import outcome
from tests.conformance.emulated import EMULATED, bound, directions
from tests.kernels.stubbed import stubbed
from tests.repository import STUDIES

ON_HOST: dict[str, dict[str, list[dict[str, Any]]]] = {
    "duplex": {"in_turn": [{}], "at_once": [{}]},
    "pool_gather": {name: [{}] for name in ("packed_by_cpu", "ceiling_copy_engine")},
    "transfers": {
        "pinned_loop": [{"direction": "both", "count": 1}, {}],
        **{f"pinned_{name}": [{}] for name in ("packed", "batch", "list_loop")},
        "pinned_list_packed": [{"threads": 1}, {"threads": 5}],
    },
}
"""Variants whose host code is compiled, with values of their cases."""
ON_HOST_LONG: dict[str, dict[str, list[dict[str, Any]]]] = {
    "pool_gather": {name: [{}] for name in ("packed_past_caches", "packed_by_2")},
    "transfers": {
        **{f"pinned_{name}": [{}] for name in ("2d", "graph")},
        "pinned_list_packed_1": [{"threads": 1}],
    },
}


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    ("study", "name", "values"),
    [
        pytest.param(study, name, values, marks=[pytest.mark.long] if of is ON_HOST_LONG else [])
        for of in (ON_HOST, ON_HOST_LONG)
        for study, variants in of.items()
        for name, values in variants.items()
    ],
)
def test_host_code_moves_every_byte(
    study: str, name: str, values: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_built_library(monkeypatch)
    module, variant = stubbed(STUDIES[study], name), STUDIES[study].variant(name)
    for small in range(len(EMULATED[study].cases)):
        for value in (way | one for way in directions(variant) for one in values):
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
