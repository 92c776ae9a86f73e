"""Made-up samples in the form of `collect`."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from analysis.results.collect import COLUMNS

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
CASE, OTHER_CASE = "batch=1,rows=512,draw=once", "batch=16,rows=512,draw=once"
RUNS = [f"2026-01-0{day}T00:00:00Z" for day in range(1, 5)]

Row = dict[str, object]


def row(variant: str, value: float | None, **fields: object) -> Row:
    """One sample."""
    default: Row = {
        "machine": "box",
        "host": "here",
        "study": "copy",
        "variant": variant,
        "case": CASE,
        "metric": "gpu_time",
        "unit": "s",
        "value": value,
        "run": NEW,
        "round": 0,
        "sample": 0,
        "verified": 1,
        "status": "ok",
        "reason": "",
        "throttle": "",
        "sm_mhz": 1980.0,
        "started_at": NEW,
        "stale": False,
        "disturbed": False,
        "core_copies": 2e10,
    }
    return default | {"named": frozenset()} | fields


def rounds(variant: str, values: Iterable[float], **fields: object) -> list[Row]:
    """One sample per round."""
    return [row(variant, value, round=n, **fields) for n, value in enumerate(values)]


def table(*rows: list[Row]) -> pd.DataFrame:
    return pd.DataFrame([entry for group in rows for entry in group], columns=COLUMNS)


def only(frame: pd.DataFrame) -> pd.Series:
    assert len(frame) == 1
    return frame.iloc[0]
