"""The cost of large pools to kernels that read in place, from the measured gathers of a study.

The page walks of a pool limit a kernel's reads, so the adviser needs their time on each machine. It
takes measured times: a fit of the model of translation needs more cases than the default grid has.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

from analysis.api.model import ENTRY_BYTES
from analysis.api.study import find_study, parse_case
from analysis.api.tables import collect, summarise

STUDY: Final = "translation"
"""The study that gathers rows from pools of many sizes. It calibrates, so the workflow renews the
adviser when its results change."""
GATHER: Final = "rows"
CLOCK: Final = "gpu_time"
WALKING: Final = 1.1
"""A pool whose rows take this many times as long as from the smallest pool waits for page walks."""

BySize: TypeAlias = list[tuple[int, float]]
"""Bytes of a row, ascending, and seconds that each translation it needs takes."""
Pools: TypeAlias = list[tuple[int, BySize]]
"""Bytes of a pool that waits for page walks, ascending, and its times."""


def touches(size: float) -> float:
    """Mean number of translations that a row of `size` bytes at a random place needs."""
    return 1 + (size - 16) / ENTRY_BYTES


def pools_of_machines(results: Path) -> Mapping[str, Pools]:
    """The pools of each machine with fresh results of STUDY."""
    study = find_study(STUDY)
    samples = collect(results, {study.name: study}, only={study.name}).samples
    if samples.empty:
        return {}
    samples = samples[(samples["study"] == study.name) & (samples["variant"] == GATHER)]
    if samples.empty:
        return {}
    summary = summarise(samples)
    fresh = (summary["stale"].astype(int) == 0) & (summary["verified"].astype(int) == 1)
    row_s: dict[str, dict[tuple[int, int], float]] = defaultdict(dict)
    rows = summary[fresh & (summary["metric"] == CLOCK)].to_dict("records")
    most = max((int(parse_case(row["case"])["rows"]) for row in rows), default=0)
    for row in rows:
        case = parse_case(row["case"])
        # Few rows are there before their page walks limit them.
        if case["order"] == "random" and 4 * int(case["rows"]) >= most:
            at = int(case["pool_mib"]) * 2**20, int(case["row_bytes"])
            row_s[str(row["machine"])][at] = float(row["median"]) / int(case["rows"])
    return {machine: walking(found) for machine, found in row_s.items()}


def walking(row_s: Mapping[tuple[int, int], float]) -> Pools:
    """The pools that wait for page walks, from the seconds of a row by size of pool and of row.

    Rows of a size without a time from the smallest pool are compared with the largest rows that
    have one, in proportion.
    """
    smallest = min((pool for pool, _ in row_s), default=0)
    covered = {size: seconds for (pool, size), seconds in row_s.items() if pool == smallest}
    found: dict[int, BySize] = defaultdict(list)
    for (pool, size), seconds in sorted(row_s.items()):
        largest = max(covered)
        without = covered.get(size, covered[largest] * size / largest)
        if seconds > WALKING * without:
            found[pool].append((size, seconds / touches(size)))
    return sorted(found.items())


def reach_bytes(pools: Pools) -> float:
    """Bytes of the largest pool without page walks: misses grow with 1 - reach / pool. NaN unless
    two pools are known."""
    if len(pools) < 2:
        return math.nan
    (small, some), (large, more) = pools[:2]
    ratio = some[0][1] / more[0][1]
    return (1 - ratio) / (1 / small - ratio / large)
