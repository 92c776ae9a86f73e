"""Measured times of ways of moving pieces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from analysis.api.study import CaseValue, Study, Variant, parse_case

from .kinds import MEMORIES, memory_of

ROLES: Final = ("step", "beyond")
DIRECTIONS: Final = ("h2d", "d2h")
METRIC: Final = "host_time"
"""The clock that ranks the ways: until all pieces have arrived, the CPU's part included."""
CALLER: Final = "submit_time"
"""The caller's cost: time until the call returns."""
PIECE_KEYS: Final = {"size", "count", "direction"}
PLACE_KEYS: Final[Mapping[str, CaseValue]] = {"host": "pitched", "device": "packed", "busy": 0}
"""Keys of a case that describe the pieces' layout and the stream; without them, these hold."""


def ways(study: Study) -> list[Variant]:
    """The variants that move pieces, not those about timing."""
    return [v for v in study.with_role(*ROLES) if memory_of(v.name) in MEMORIES]


def moves(study: Study, summary: pd.DataFrame) -> pd.DataFrame:
    """Rows of a `summary` with the time of a way of moving pieces.

    Columns machine, variant, memory, metric, median, ci_low, ci_high, size, count, direction, host,
    device, busy. Only fresh, verified rows without other case keys.
    """
    rows = summary[
        (summary["study"] == study.name)
        & summary["variant"].isin([variant.name for variant in ways(study)])
        & summary["metric"].isin([METRIC, CALLER])
        & (summary["verified"].astype(int) == 1)
        & (summary["stale"].astype(int) == 0)
    ].reset_index(drop=True)
    keys = pd.DataFrame([parse_case(case) for case in rows["case"]], index=rows.index)
    keys = keys.reindex(columns=sorted({*PIECE_KEYS, *PLACE_KEYS, *keys.columns}))
    others = keys.columns.difference([*PIECE_KEYS, *PLACE_KEYS])
    is_move = keys["direction"].isin(DIRECTIONS) & keys[others].isna().all(axis=1)
    columns = ["machine", "variant", "metric", "median", "ci_low", "ci_high"]
    table = rows.loc[is_move, columns].join(keys[[*PIECE_KEYS, *PLACE_KEYS]])
    for key, start in PLACE_KEYS.items():
        table[key] = table[key].astype(object).where(table[key].notna(), start)
    table["memory"] = table["variant"].map(memory_of)
    return table.astype({"size": float, "count": float})


def rows_in_place(study: Study, summary: pd.DataFrame) -> pd.DataFrame:
    """The host times in `moves` of pitched pieces that become packed, on an idle stream."""
    rows = moves(study, summary)
    is_there = [rows[key] == value for key, value in PLACE_KEYS.items()]
    return rows[np.logical_and.reduce([rows["metric"] == METRIC, *is_there])]
