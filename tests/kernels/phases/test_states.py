"""Whatever is done to an allocator in whatever order, the same things hold after every action."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.kernels.phases.modules import KIB, MIB, built
from tests.kernels.phases.native import native, ran

STEPS = (pytest.param("p4_final", marks=pytest.mark.long), "p5_dropin")
"""Without --long, the injected faults are those of the first."""


@pytest.fixture
def operations(request: pytest.FixtureRequest) -> int:
    """Minimum number of random operations."""
    options = request.config.getoption
    return 1_000_000 if options("--exhaustive") else 50_000 if options("--long") else 10_000


class States(RuleBasedStateMachine):
    """Single actions, which shrink well, and bursts of random ones, which go far."""

    module: Any = None
    total = 0

    @initialize(mib=st.sampled_from([24, 64, 256]))
    def begin(self, mib: int) -> None:
        self.states = self.module.StateCheck(mib * MIB)

    @rule(size=st.integers(1, 40 * MIB) | st.integers(1, 4 * KIB), stream=st.integers(0, 2))
    def allocate(self, size: int, stream: int) -> None:
        self.states.allocate(size, stream)

    @rule(index=st.integers(0, 1000), ticket=st.booleans())
    def free(self, index: int, ticket: bool) -> None:
        self.states.free(index, ticket)

    @rule(index=st.integers(0, 1000), stream=st.integers(0, 2))
    def record(self, index: int, stream: int) -> None:
        self.states.record(index, stream)

    @rule(stream=st.integers(0, 2), count=st.integers(1, 5))
    def complete(self, stream: int, count: int) -> None:
        self.states.complete(stream, count)

    @rule(keep=st.integers(0, 64 * MIB))
    def trim(self, keep: int) -> None:
        self.states.trim(keep)

    @rule(limit=st.integers(0, 256 * MIB))
    def set_limit(self, limit: int) -> None:
        self.states.set_limit(limit)

    @rule(count=st.integers(0, 3))
    def fail_driver(self, count: int) -> None:
        self.states.fail_driver(count)

    @rule(index=st.integers(0, 1000))
    def misuse(self, index: int) -> None:
        self.states.misuse(index)

    @rule(seed=st.integers(0, 2**32), log2=st.integers(9, 26))
    def burst(self, seed: int, log2: int) -> None:
        self.states.burst(seed, 200, log2)

    @invariant()
    def holds(self) -> None:
        if hasattr(self, "states"):
            self.states.check()

    def teardown(self) -> None:
        if hasattr(self, "states"):
            self.states.drain()
            States.total += self.states.operations


@pytest.mark.parametrize("step", STEPS)
def test_every_state_holds(step: str, operations: int) -> None:
    States.module = built(step)
    States.total = 0
    machine: Any = States.TestCase
    machine.settings = settings(
        max_examples=operations // 150,  # the number of bursts of an example varies
        stateful_step_count=50,
        suppress_health_check=list(HealthCheck),
    )
    machine().runTest()
    # Counts only bursts; single actions come on top.
    assert States.total > operations


@pytest.mark.parametrize("step", STEPS)
def test_so_many_operations_hold(step: str, operations: int) -> None:
    module = built(step)
    done = 0
    for seed in range(operations // 500):
        states = module.StateCheck(256 * MIB)
        states.burst(seed, 500, 10 + seed % 17)
        states.drain()
        done += states.operations
    assert done >= operations


# The native tests, and allocators with a fault put in, which they must find.


@pytest.mark.long
def test_states_under_address_sanitizer() -> None:
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    done = ran(native("states-under-asan", "states.cpp", *flags), "20000", "1")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
def test_threads_under_thread_sanitizer() -> None:
    done = ran(native("threads-under-tsan", "threads.cpp", "-fsanitize=thread"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_threads_keep_what_is_theirs() -> None:
    done = ran(native("threads", "threads.cpp"))
    assert done.returncode == 0, done.stdout + done.stderr
