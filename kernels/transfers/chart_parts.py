"""Code shared by the charts of this study."""

from __future__ import annotations

import altair as alt
import pandas as pd

from analysis.facts.points import Context
from analysis.study import parse_case

from .advise import DIRECTIONS
from .kinds import MEMORIES

ROW_PX = 24


def single_copies(context: Context) -> pd.DataFrame:
    """Summary rows of the loop variants with one piece, with size and direction."""
    summary = context.inputs.of_study(context.inputs.summary, context.study)
    names = [f"{kind}_loop" for kind in MEMORIES]
    own = summary[
        summary["variant"].isin(names)
        & summary["metric"].isin(["gpu_time", "host_time"])
        & (summary["stale"].astype(int) == 0)
    ]
    keys = pd.DataFrame([parse_case(case) for case in own["case"]], index=own.index)
    keys = keys.reindex(columns=["size", "count", "direction"])
    is_one = (keys["count"] == 1) & keys["direction"].isin(DIRECTIONS)
    kept = own[is_one].join(keys.loc[is_one, ["size", "direction"]].astype({"size": float}))
    # The device time of a copy in which the CPU takes part is not worth a line.
    host_work = {v.name for v in context.study.variants if v.host_work}
    return kept[(kept["metric"] == "host_time") | ~kept["variant"].isin(host_work)]


def tooltips(*fields: str) -> list[alt.Tooltip]:
    names = (*fields, "machine")
    return [alt.Tooltip(f"{name}:N", title=name.replace("_", " ")) for name in names]


def known_directions(table: pd.DataFrame) -> list[str]:
    return [direction for direction in DIRECTIONS if direction in set(table["direction"])]


def binary(size: int) -> str:
    """`16 MiB`: sizes here are powers of two."""
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} B"
