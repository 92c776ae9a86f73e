"""The adviser, judged in cells that are on no grid and drawn anew in each run."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

import numpy as np

from analysis.api.measure import Skip, running_trials
from analysis.api.memory import cuda, cudart
from analysis.api.study import HotpathError, find_study

from .trial import RUN_S, Bench, Verdict, calibrate_here, hold_out, judge

STUDY: Final = "transfers"
PREFIXES: Final = {"results": "advised", "calibration": "calibrated", "constants": "constants"}
"""Prefix of the metrics by the source of the advice."""
NEAR: Final = 0.05
"""An advised way is a hit if its time exceeds the fastest way's by at most this share."""
NEAR_TIME: Final = 0.1
"""A time is predicted if it is this near to the measured one."""


class Judged:
    """A copy of `size` bytes to the device, beside which the adviser is judged."""

    def __init__(self, host: int, device: int, size: int) -> None:
        kind = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
        self._copy = device, host, size, kind

    def launch(self, stream: int) -> None:
        cuda(cudart.cudaMemcpyAsync(*self._copy, stream))

    def samples(self, stream: int) -> Mapping[str, list[float]]:
        """For each source of advice, by its prefix: `loss` in each cell, the time of the advised
        way over the fastest one's; `hits`, the share of cells with a small loss; `worst`, the
        largest loss; `predicted`, the share of predicted times that are near the measured one.

        Skip if a way cannot run here; HotpathError if the output of one was wrong."""
        seed = secrets.randbits(31)
        here = running_trials(find_study(STUDY), stream, np.random.default_rng(seed))
        bench = Bench(here.bind)
        try:
            verdicts = judge(hold_out(here, bench, seed, calibrate_here(here, bench), RUN_S))
        except HotpathError as error:
            bench.require_right()
            raise Skip(str(error)) from error
        bench.require_right()
        found: dict[str, list[float]] = {}
        for verdict in verdicts:
            found |= _metrics(verdict)
        return found


def _metrics(verdict: Verdict) -> dict[str, list[float]]:
    prefix = PREFIXES[verdict.source]
    metrics = {
        "loss": list(verdict.losses),
        "hits": [verdict.share_of_losses(NEAR)],
        "worst": [max(verdict.losses)],
    }
    if verdict.errors:
        metrics["predicted"] = [verdict.share_of_errors(NEAR_TIME)]
    return {f"{prefix}_{name}": values for name, values in metrics.items()}


def bind(host: int, device: int, *, size: int, **others: int) -> Judged:
    """Like bindings.cpp, for one piece to the device."""
    del others
    return Judged(host, device, size)
