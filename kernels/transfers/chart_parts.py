"""Rows that the charts of this study share."""

from __future__ import annotations

import pandas as pd

from analysis.api.charts import StudyFacts, samples_address
from analysis.api.study import parse_case

from .kinds import MEMORIES, memory_of
from .measured import DIRECTIONS


def single_copies(facts: StudyFacts) -> pd.DataFrame:
    """Summary rows of loops of one piece, with their size, direction and memory, and the address of
    their samples."""
    summary = facts.summary
    names = [f"{kind}_loop" for kind in MEMORIES]
    loops = summary[
        summary["variant"].isin(names)
        & summary["metric"].isin(["gpu_time", "host_time"])
        & (summary["stale"].astype(int) == 0)
    ]
    keys = pd.DataFrame([parse_case(case) for case in loops["case"]], index=loops.index)
    keys = keys.reindex(columns=["size", "count", "direction"])
    is_one = (keys["count"] == 1) & keys["direction"].isin(DIRECTIONS)
    kept = loops[is_one].join(keys.loc[is_one, ["size", "direction"]].astype({"size": float}))
    # If the CPU takes part in a copy, the time between events does not describe it.
    host_work = {v.name for v in facts.study.variants if v.host_work}
    kept = kept[(kept["metric"] == "host_time") | ~kept["variant"].isin(host_work)]
    places = kept[["machine", "study", "variant", "case", "metric"]].itertuples(index=False)
    return kept.assign(
        memory=kept["variant"].map(memory_of),
        href=[samples_address(*place) for place in places],
    )


def binary(size: int) -> str:
    """A size as text, such as `16 MiB`: sizes here are powers of two."""
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} B"
