"""Waiting for an event, with a deadline."""

import time
from collections.abc import Callable

import pytest

DEADLINE_S = 60.0


def wait_for(happened: Callable[[], object]) -> None:
    """Return as soon as `happened` is true; fail after a minute."""
    until = time.monotonic() + DEADLINE_S
    while not happened():
        if time.monotonic() > until:
            pytest.fail(f"{happened} did not come true in {DEADLINE_S:g} s")
        time.sleep(0.01)
