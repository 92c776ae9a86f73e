"""Leaves out host times that were taken cold.

By method 1 the first host time of a cell followed its device times at once. That launch is slower
than the next: taking device times leaves work behind, of up to 0.15 ms on the machines measured.
"""

from __future__ import annotations

import pandas as pd

FIRST_METHOD = 1
HOST_METRICS = ("host_time", "submit_time")
CELL = ["study", "variant", "case", "run", "round"]

NEGLIGIBLE_BESIDE_S = 0.015
"""A time this long is off by 1 % at most for being cold, so it may stand where it is the only one,
and needs no warming."""


def warmed(samples: pd.DataFrame, methods: dict[str, int]) -> pd.DataFrame:
    """`samples` of one variant without the cold ones; `methods` is the method of each run.

    A cell whose only host time is cold and short has none.
    """
    if samples.empty:
        return samples
    first = samples["run"].map(methods) == FIRST_METHOD
    by_host = first & samples["metric"].isin(HOST_METRICS)
    if not by_host.any():
        return samples
    cells = pd.MultiIndex.from_frame(samples[CELL])
    on_device = cells.isin(cells[samples["metric"] == "gpu_time"])
    count = samples.groupby([*CELL, "metric"])["sample"].transform("size")
    may_stand = (count == 1) & (samples["value"] >= NEGLIGIBLE_BESIDE_S)
    return samples[~(by_host & on_device & (samples["sample"] == 0) & ~may_stand)]
