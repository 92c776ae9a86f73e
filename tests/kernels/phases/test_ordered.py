"""Streams that wait for others on the device when much freed memory is in use."""

from __future__ import annotations

from tests.kernels.phases.native import native, ran

ORDER = "-DSOURCE=HostileOrder"


def test_what_waits_is_used_again_behind_those_that_use_it() -> None:
    done = ran(native("ordered", "ordered.cpp", ORDER, variant="p5_dropin"))
    assert done.returncode == 0, done.stdout + done.stderr
