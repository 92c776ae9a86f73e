"""The allocator as PyTorch calls it, over a host that only counts."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.compiled import QUICK, module
from tests.repository import STUDIES

STUDY = STUDIES["training"]
pytestmark = pytest.mark.long  # the bindings are compiled for these tests alone
MIB = 2**20


@pytest.fixture(scope="module", params=["p5_dropin", "p7_ordered"])
def plug(request: pytest.FixtureRequest) -> Any:
    made = module(STUDY, STUDY.variant(request.param), optimisation=QUICK)
    made.use_host(256 * MIB)
    return made


@pytest.fixture(autouse=True)
def nothing_is_kept(plug: Any) -> Any:
    yield
    plug.set_fraction(1.0)
    plug.empty_cache()
    assert plug.statistics()["reserved"] == plug.statistics(1)["reserved"] == 0
    plug.reset_statistics()


def test_memory_is_kept_until_the_cache_is_emptied(plug: Any) -> None:
    first = plug.allocate(4 * MIB)
    plug.free(first)
    assert plug.allocate(4 * MIB) == first
    plug.free(first)
    stats = plug.statistics()
    assert stats["peak_active"] >= 4 * MIB
    assert stats["peak_reserved"] == stats["reserved"] > 0
    assert plug.allocate(0) == 0
    plug.free(0)


def test_each_device_has_its_memory_and_others_are_refused(plug: Any) -> None:
    for device in (-1, 16):
        with pytest.raises(ValueError, match=f"device: expected 0 to 15, got {device}"):
            plug.allocate(MIB, device=device)
    held = plug.allocate(4 * MIB, device=1)
    assert plug.statistics(1)["reserved"] > 0 == plug.statistics(0)["reserved"]
    plug.free(held, device=1)


def test_a_limit_is_kept_and_freed_memory_is_available_again(plug: Any) -> None:
    plug.set_fraction(0.25)
    held = [plug.allocate(16 * MIB) for _ in range(3)]
    # Without PyTorch's headers the error is ours; with them it is torch.OutOfMemoryError.
    with pytest.raises(RuntimeError, match="out of memory on device 0: asked for 33554432 B"):
        plug.allocate(32 * MIB)
    for ptr in held:
        plug.free(ptr)
    plug.free(plug.allocate(48 * MIB))


def test_calls_are_counted_on_request(plug: Any) -> None:
    plug.free(plug.allocate(MIB))
    plug.start_counting()
    for _ in range(1000):
        plug.free(plug.allocate(MIB))
    seconds, allocations = plug.stop_counting()
    assert allocations == 1000 and 1e-6 < seconds < 1
    plug.start_counting()
    assert plug.stop_counting() == (0, 0)


def test_a_fork_may_free_but_not_allocate(plug: Any) -> None:
    held = plug.allocate(MIB)
    child = os.fork()
    if child == 0:
        plug.free(held)
        try:
            plug.allocate(MIB)
        except RuntimeError as error:
            os._exit(0 if "got a fork of that" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    plug.free(held)
