"""The cost of a kind of memory, and the effect of holding much of it on other work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from analysis.measure.cell import Skip
from analysis.study import Case
from kernels.common.host_memory import HostMemory
from tests.kernels.cuda import outcome
from tests.kernels.moves import python_module
from tests.kernels.transfers.fake import PRICE, TRANSFERS


def checked(workload: Any, name: str, **values: int) -> Any:
    """An operation of that variant, which fails its check before it runs and passes after."""
    workload.prepare(Case({**values}, 0, "default"))
    operation = workload.bind(TRANSFERS.variant(name), python_module())
    operation.poison()
    assert operation.check() is not None
    assert outcome(operation) is None
    return operation


def test_pinning_is_skipped_if_memory_is_short(
    workload: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PRICE, "allocatable_bytes", lambda: 100)
    assert PRICE.Pressure("registered_huge", 25).check() is not None  # nothing ran
    with pytest.raises(Skip, match="26 B is more than a quarter of 100 B"):
        PRICE.Pressure("registered_huge", 26)


def test_a_price_is_that_of_its_parts(workload: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = {"answer": True}

    class Locked(HostMemory):
        def is_page_locked(self) -> bool:
            return locked["answer"]

    monkeypatch.setattr(PRICE, "HostMemory", Locked)
    operation = checked(workload, "registered_price", size=5000)
    samples = operation.own_samples(0, 2)
    assert len(samples["allocate_time"]) == 2 and min(samples["allocate_time"]) > 0
    assert set(samples) == {
        f"{part}_time" for part in ("allocate", "register", "free", "write", "read")
    }
    locked["answer"] = False
    assert outcome(operation) == "page-locked: expected True, got False"


def test_work_beside_held_memory_is_compared_with_work_before_and_after(
    workload: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: set[int] = set()

    class Held(HostMemory):
        def __init__(self, kind: str, size: int) -> None:
            super().__init__(kind, size)
            held.add(id(self))

        def close(self) -> None:
            held.discard(id(self))
            super().close()

    def seconds(work: Callable[[], object]) -> float:
        work()
        return 0.03 if held else 0.02

    monkeypatch.setattr(PRICE, "WORK_BYTES", 4096)
    monkeypatch.setattr(PRICE, "HostMemory", Held)
    monkeypatch.setattr(PRICE, "_seconds", seconds)
    operation = checked(workload, "pinned_pressure", held_bytes=4096)
    samples = operation.own_samples(0, 3)
    assert samples == {"work_time": [0.03], "work_share": [pytest.approx(1.5)]}
    assert not held
