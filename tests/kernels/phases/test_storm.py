"""Threads, short-lived streams, captures and refusals at once, checked against a shadow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels.phases.modules import STUDY
from tests.kernels.phases.native import native, ran

STEP = "p5_dropin"
SOURCES = ("HostileSource", "HostilePages", "HostileOrder")
"""Sources of the step: the first makes it p5_dropin, pages make it p6_mapped, streams that
wait for each other p7_ordered."""
SANITIZERS = {
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "thread": ("-fsanitize=thread",),
}


def storm(
    name: str,
    operations: int,
    *flags: str,
    source: str = SOURCES[0],
    folder: Path = STUDY.folder,
    limit_s: int = 300,
) -> str | None:
    """The fault that 8 threads found in `operations` operations, or an empty string."""
    flags = (f"-DSOURCE={source}", *flags)
    program = native(f"storm-{name}-{source}", "storm.cpp", *flags, variant=STEP, folder=folder)
    done = ran("timeout", str(limit_s), program, str(operations), "1", "8")
    return None if done.returncode == 0 else done.stdout + done.stderr or "a crash, or no end"


@pytest.mark.parametrize(
    "source",
    # test_mapped.py and test_ordered.py use the others without threads.
    [SOURCES[0], *(pytest.param(source, marks=pytest.mark.long) for source in SOURCES[1:])],
)
def test_nothing_goes_wrong_in_a_storm(source: str) -> None:
    assert storm("plain", 50_000, source=source) is None


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize(
    ("operations", "limit_s"),
    [
        pytest.param(50_000, 300, marks=pytest.mark.long),
        pytest.param(1_000_000, 3600, marks=pytest.mark.exhaustive),
    ],
)
def test_nothing_goes_wrong_under_a_sanitizer(
    operations: int, limit_s: int, sanitizer: str, source: str
) -> None:
    flags = SANITIZERS[sanitizer]
    assert storm(sanitizer, operations, *flags, source=source, limit_s=limit_s) is None
