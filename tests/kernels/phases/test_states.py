"""Whatever is done to an allocator in whatever order, the same things hold after every action."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.kernels.phases.modules import KIB, MIB, built

STEPS = ("p4_final", "p5_dropin")
INDEX, STREAM, FEW = st.integers(0, 1000), st.integers(0, 2), st.integers(0, 5)


@pytest.fixture
def operations(request: pytest.FixtureRequest) -> int:
    """Minimum number of random operations."""
    options = request.config.getoption
    return 1_000_000 if options("--exhaustive") else 50_000 if options("--long") else 10_000


def of(name: str, **arguments: st.SearchStrategy[Any]) -> Callable[..., None]:
    """A rule that calls this action of StateCheck, which checks all invariants after it."""

    def act(self: States, **values: Any) -> None:
        getattr(self.states, name)(**values)

    act.__name__ = name
    made: Callable[..., None] = rule(**arguments)(act)  # type: ignore[call-overload]
    return made


class States(RuleBasedStateMachine):
    """Single actions, which shrink well, and bursts of random ones, which go far."""

    module: Any = None

    @initialize(mib=st.sampled_from([24, 64, 256]))
    def begin(self, mib: int) -> None:
        self.states = self.module.StateCheck(mib * MIB)

    allocate = of(
        "allocate", bytes=st.integers(0, 40 * MIB) | st.integers(1, 4 * KIB), stream=STREAM
    )
    free = of("free", index=INDEX, with_ticket=st.booleans())
    record = of("record", index=INDEX, stream=STREAM)
    complete = of("complete", stream=STREAM, count=FEW)
    trim = of("trim", keep=st.integers(0, 64 * MIB))
    set_limit = of("set_limit", bytes=st.integers(0, 256 * MIB))
    fail_driver = of("fail_driver", count=FEW)
    misuse = of("misuse", index=INDEX)
    burst = of("burst", seed=st.integers(0, 2**32), count=st.just(200), max_log2=st.integers(9, 26))

    def teardown(self) -> None:
        self.states.drain()


@pytest.mark.parametrize("step", STEPS)
def test_every_state_holds(step: str, operations: int) -> None:
    States.module = built(step)
    machine: Any = States.TestCase
    machine.settings = settings(
        max_examples=operations // 400,
        stateful_step_count=50,
        suppress_health_check=list(HealthCheck),
    )
    machine().runTest()


@pytest.mark.parametrize("step", STEPS)
def test_random_operations_hold(step: str, operations: int) -> None:
    for seed in range(operations // 500):
        states = built(step).StateCheck(256 * MIB)
        states.burst(seed, 500, 10 + seed % 17)
        states.drain()


@pytest.mark.parametrize("step", STEPS)
def test_a_fit_is_found_among_blocks_of_its_bin(step: str) -> None:
    """A bin holds blocks of nearly one size; here only one of them is large enough."""
    draw = random.Random(1)
    for _ in range(100):
        states = built(step).StateCheck(24 * MIB)
        asked = draw.randint(202, 207)  # granules of 512 B
        small = [draw.randint(200, asked - 1) for _ in range(draw.choice([1, 24]))]
        sizes = [*small, draw.randint(asked, 207)]
        for size in sizes:
            states.allocate(512 * size, 0)
            states.allocate(512, 0)  # keeps them apart
        for log2 in range(21, 8, -1):  # the rest of the memory
            while states.allocate(2**log2, 0) >= 0:
                pass
        places = [*range(len(sizes))]
        # A free moves the others down a place.
        for place in draw.choice([places, [2 * n for n in reversed(places)]]):
            states.free(place, False)
        states.allocate(512 * asked, 0)
        states.drain()
