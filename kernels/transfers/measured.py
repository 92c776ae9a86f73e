"""Measured times of ways of moving pieces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from analysis.api.study import CaseValue, Study, parse_case

from .kinds import MEMORIES, memory_of

DIRECTIONS: Final = ("h2d", "d2h")
METRIC: Final = "host_time"
"""The clock that ranks the ways: until all pieces have arrived, the CPU's part included."""
CALLER: Final = "submit_time"
"""The caller's cost: time until the call returns."""
PLACE_KEYS: Final[Mapping[str, CaseValue]] = {"host": "pitched", "device": "packed", "busy": 0}
"""Keys of a case that describe the pieces' layout and the stream; without them, these hold."""
KEYS: Final = ("size", "count", "direction", *PLACE_KEYS)


def moves(study: Study, summary: pd.DataFrame) -> pd.DataFrame:
    """Rows of a `summary` with the time of a way of moving pieces, not of ways of timing it.

    The summary's columns, `memory`, and KEYS of the case. Only fresh, verified rows without other
    case keys.
    """
    steps = study.with_role("step", "beyond")
    names = [variant.name for variant in steps if memory_of(variant.name) in MEMORIES]
    rows = summary[
        (summary["study"] == study.name)
        & summary["variant"].isin(names)
        & summary["metric"].isin([METRIC, CALLER])
        & (summary["verified"] == 1)
        & (summary["stale"] == 0)
    ]
    cases = [{**PLACE_KEYS, **parse_case(case)} for case in rows["case"]]
    is_move = [case.keys() == {*KEYS} and case["direction"] in DIRECTIONS for case in cases]
    keys = pd.DataFrame(cases, rows.index).reindex(columns=KEYS)
    return rows.assign(memory=rows["variant"].map(memory_of)).join(keys).loc[is_move]
