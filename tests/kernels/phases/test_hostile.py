"""Allocators with streams that lag, end and return, with captures, and with a refusing driver."""

from __future__ import annotations

import re

import pytest

from tests.kernels.phases.native import HERE, native, ran

LISTED = re.compile(r"^ +SITUATION\((\w+)\),", re.MULTILINE)
SITUATIONS = LISTED.findall((HERE / "hostile.cpp").read_text())


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_situation_is_mastered(situation: str) -> None:
    # The compiler counts executed blocks, so that no clock has to measure a search.
    flags = "-fsanitize-coverage=trace-pc"
    done = ran(native("hostile", "hostile.cpp", flags, variant="p5_dropin"), situation)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("step", "trace"),
    [pytest.param("p5_dropin", "off", marks=pytest.mark.long), ("p5_traced", "on")],
)
def test_observers_record_events(step: str, trace: str) -> None:
    done = ran(native(f"observers-{step}", "observers.cpp", variant=step), trace)
    assert done.returncode == 0, done.stdout + done.stderr
