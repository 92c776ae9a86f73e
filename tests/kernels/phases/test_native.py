"""Allocators with streams that lag, end and return, with captures and with a refusing driver."""

from __future__ import annotations

import pytest

from tests.kernels.phases.modules import drive

SOURCES = ("segments", "pages", "order")
"""Sources of a drop-in allocator: with segments it is p5_dropin, with mapped pages p6_mapped, with
streams that wait for each other p7_ordered."""
SANITIZED = [("address,undefined", "p5_dropin"), ("thread", "p5_dropin"), ("thread", "p5_streams")]


def test_every_scenario_holds() -> None:
    drive("p5_dropin", "scenarios")
    assert [int(drive(f"p5_{name}", "trace")) for name in ("dropin", "traced")] == [0, 3]


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_goes_wrong_in_a_storm(source: str) -> None:
    drive("p5_dropin", "storm", source, "50000", "8", limit_s=60)
    drive("p5_dropin", "storm", source, "20000", "1", limit_s=60)


@pytest.mark.long
@pytest.mark.parametrize(("sanitizer", "variant"), SANITIZED)
def test_sanitizers_find_nothing(sanitizer: str, variant: str) -> None:
    for source in SOURCES if variant == "p5_dropin" else SOURCES[:1]:
        drive(variant, "storm", source, "50000", "8", sanitizer=sanitizer, limit_s=3600)
