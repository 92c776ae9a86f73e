"""Whatever is done to an allocator in whatever order, the same things hold after every action."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kernels.phases.modules import KIB, MIB, built

STEPS = ("p4_final", "p5_dropin")
INDEX, STREAM, FEW = st.integers(0, 1000), st.integers(0, 2), st.integers(0, 5)
BYTES = st.integers(0, 40 * MIB) | st.integers(1, 4 * KIB)
ACTIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "allocate": {"bytes": BYTES, "stream": STREAM},
    "free": {"index": INDEX, "with_ticket": st.booleans()},
    "record": {"index": INDEX, "stream": STREAM},
    "complete": {"stream": STREAM, "count": FEW},
    "trim": {"keep": st.integers(0, 64 * MIB)},
    "set_limit": {"bytes": st.integers(0, 256 * MIB)},
    "fail_driver": {"count": FEW},
    "misuse": {"index": INDEX},
    "burst": {"seed": st.integers(0, 2**32), "count": st.just(200), "max_log2": st.integers(9, 26)},
}
"""Actions of StateCheck, which checks all invariants after each: single ones shrink well, bursts of
random ones go far."""


@pytest.mark.parametrize("step", STEPS)
def test_every_state_holds(step: str, request: pytest.FixtureRequest) -> None:
    options = request.config.getoption
    examples = 2500 if options("--exhaustive") else 125 if options("--long") else 25
    action = st.one_of(
        [st.tuples(st.just(name), st.fixed_dictionaries(of)) for name, of in ACTIONS.items()]
    )

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(mib=st.sampled_from([24, 64, 256]), actions=st.lists(action, min_size=5, max_size=50))
    def hold(mib: int, actions: list[tuple[str, dict[str, Any]]]) -> None:
        states = built(step).StateCheck(mib * MIB)
        for name, arguments in actions:
            getattr(states, name)(**arguments)
        states.drain()

    hold()
    for seed in range(examples):
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
        for place in reversed(range(len(sizes))):
            states.free(2 * place, False)
        states.allocate(512 * asked, 0)
        states.drain()
