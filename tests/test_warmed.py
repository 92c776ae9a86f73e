"""Host times that the first method took cold are left out of every table."""

from __future__ import annotations

import pandas as pd

from analysis.results.warmed import CELL, warmed

RUN = "2026-11-21T00:00:00Z"


def frame(*rows: tuple[str, int, float], round_number: int = 0) -> pd.DataFrame:
    """(metric, sample, value) of one cell."""
    cell = ["s", "v", "c", RUN, round_number]
    return pd.DataFrame(
        [[*cell, *row] for row in rows], columns=[*CELL, "metric", "sample", "value"]
    )


def kept(samples: pd.DataFrame, method: int = 1) -> list[tuple[str, int]]:
    left = warmed(samples, {RUN: method})
    return list(zip(left["metric"], left["sample"], strict=True))


BOTH = frame(
    ("gpu_time", 0, 1e-5), ("gpu_time", 1, 1e-5), ("host_time", 0, 2e-4), ("host_time", 1, 2e-5)
)


def test_the_first_host_time_after_device_times_is_cold() -> None:
    assert kept(BOTH) == [("gpu_time", 0), ("gpu_time", 1), ("host_time", 1)]


def test_a_short_one_alone_leaves_the_cell_without_and_a_long_one_stands() -> None:
    assert kept(frame(("gpu_time", 0, 1e-5), ("host_time", 0, 2e-4))) == [("gpu_time", 0)]
    assert len(kept(frame(("gpu_time", 0, 0.3), ("host_time", 0, 0.3)))) == 2


def test_cells_without_device_times_were_warmed_and_so_is_the_second_method() -> None:
    assert len(kept(frame(("host_time", 0, 2e-5)))) == 1
    assert len(kept(BOTH, method=2)) == len(BOTH)


def test_cells_are_told_apart_by_round() -> None:
    only_host = frame(("host_time", 0, 2e-5), round_number=1)
    assert len(kept(pd.concat([BOTH, only_host], ignore_index=True))) == 4
