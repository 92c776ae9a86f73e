"""Allocators under random actions: of one thread, and with streams that lag, end and return, with
captures and with a refusing driver."""

import random

import pytest

from tests.kernels.phases.modules import MIB, built, drive

SOURCES = ("segments", "pages", "order")
"""Sources of a drop-in allocator: with segments it is p5_dropin, with mapped pages p6_mapped, with
streams that wait for each other p7_ordered."""
SANITIZED = [("address,undefined", "p5_dropin"), ("thread", "p5_dropin"), ("thread", "p5_streams")]


def test_every_scenario_holds() -> None:
    drive("p5_dropin", "scenarios")


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_goes_wrong_in_a_storm(source: str) -> None:
    drive("p5_dropin", "storm", source, "50000", "8", limit_s=60)


@pytest.mark.long
@pytest.mark.parametrize(("sanitizer", "variant"), SANITIZED)
def test_sanitizers_find_nothing(sanitizer: str, variant: str) -> None:
    for source in SOURCES if variant == "p5_dropin" else SOURCES[:1]:
        drive(variant, "storm", source, "50000", "8", sanitizer=sanitizer, limit_s=3600)


STEPS = ("p4_final", "p5_dropin")


@pytest.mark.parametrize("step", STEPS)
def test_every_state_holds(step: str, request: pytest.FixtureRequest) -> None:
    """StateCheck checks all invariants after each of its random actions."""
    seeds = 3000 if request.config.getoption("--exhaustive") else 48
    for seed in range(seeds):
        states = built(step).StateCheck((24, 64, 256)[seed % 3] * MIB)
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
        draw.shuffle(sizes)
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
