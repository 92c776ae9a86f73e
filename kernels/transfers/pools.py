"""Large pools: how much host memory the GPU's translations cover, and gathers from larger pools.

Other studies have measured both. Lists of pieces lie in pools that the translations cover.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from analysis.api.quantities import quantity
from analysis.api.study import Study, find_study, parse_case
from analysis.api.tables import NEAR, Point, fresh_rows, link_rates, nearest

from .chart_parts import binary

TRANSLATION: Final = "translation"
"""The study that gathers rows from pools of many sizes."""
ROWS: Final = "rows"
ROWS_CLOCK: Final = "gpu_time"
WALKING: Final = 1.1
"""A pool whose rows take this many times as long as from the smallest pool waits for page walks."""
GATHERS: Final = "pool_gather"
"""The study that compares gathers of scattered rows from large pools."""
GATHERS_CLOCK: Final = "host_time"

RowSeconds: TypeAlias = Mapping[tuple[int, int], float]
"""Seconds of a row by the bytes of the pool and of the row."""


@dataclass(frozen=True)
class Gather:
    """The fastest measured gather of `count` rows of `size` bytes from a pool, in `seconds`."""

    machine: str
    variant: str
    size: int
    count: int
    pool: int
    seconds: float


@dataclass(frozen=True)
class Pools:
    """Bytes that the translations of each machine's GPU cover, and gathers from larger pools."""

    reaches: Mapping[str, float]
    gathers: Sequence[Gather]

    def reach(self, machine: str) -> float | None:
        """The machine's reach, or the smallest one of other machines; None if none is known."""
        return self.reaches.get(machine, min(self.reaches.values(), default=None))

    def gathers_on(self, machine: str) -> list[Gather]:
        return [one for one in self.gathers if one.machine == machine]

    def nearest(self, machine: str, size: int, count: int, pool: int) -> Gather | None:
        """The machine's gather that is nearest to these rows."""
        known: dict[Point, Gather] = {
            (one.size, one.count, one.pool): one for one in self.gathers_on(machine)
        }
        found = nearest(known, (size, count, pool))
        return known[found] if found else None

    def refusal(self, machine: str, size: int, count: int, pool: int) -> str:
        """Says that lists from such a pool were not measured, and names the nearest gather of the
        study that measured them; empty if the GPU's translations cover the pool, or if the pieces
        nearly fill it."""
        reach = self.reach(machine)
        if pool <= max(reach or 0, NEAR * size * count):
            return ""
        text = f"not measured: lists in a pool of {binary(pool)}"
        if reach is not None:
            text += f", beyond the {reach / 2**20:.0f} MiB that a GPU's translations cover"
        near = self.nearest(machine, size, count, pool)
        if near is None:
            return text
        there = f"{near.count} × {binary(near.size)} from {binary(near.pool)}"
        there += f" in {quantity(near.seconds, 's')}, by {near.variant}"
        return f"{text}. The nearest gather to the device, in the study {GATHERS}: {there}"


def read_pools(results: Path, study: Study) -> Pools:
    """The pools in a folder of results; no gather exceeds the rate of the `study`'s limit."""
    assert study.limit is not None
    return Pools(_reaches(results), _gathers(results, link_rates(results, study.limit)))


def _reaches(results: Path) -> dict[str, float]:
    rows = fresh_rows(results, find_study(TRANSLATION))
    rows = rows[(rows["variant"] == ROWS) & (rows["metric"] == ROWS_CLOCK)]
    cases = {case: parse_case(case) for case in rows["case"].unique()}
    most = max((int(case["rows"]) for case in cases.values()), default=0)
    row_s: dict[str, dict[tuple[int, int], float]] = {}
    for row in rows.to_dict("records"):
        case = cases[row["case"]]
        # Few rows arrive before their page walks limit them.
        if case["order"] == "random" and 4 * int(case["rows"]) >= most:
            at = int(case["pool_mib"]) * 2**20, int(case["row_bytes"])
            row_s.setdefault(str(row["machine"]), {})[at] = row["median"] / int(case["rows"])
    found = {machine: reach_bytes(times) for machine, times in row_s.items()}
    return {machine: reach for machine, reach in found.items() if math.isfinite(reach)}


def reach_bytes(row_s: RowSeconds) -> float:
    """Bytes of the largest pool without page walks: misses grow with 1 - reach / pool.

    NaN unless two pools wait for page walks with the smallest rows.
    """
    smallest = min(row_s, default=(0, 0))
    times = sorted(
        (pool, seconds) for (pool, size), seconds in row_s.items() if size == smallest[1]
    )
    walking = [(pool, seconds) for pool, seconds in times if seconds > WALKING * times[0][1]]
    if len(walking) < 2:
        return math.nan
    (small, some), (large, more) = walking[:2]
    ratio = some / more
    return (1 - ratio) / (1 / small - ratio / large)


def _gathers(results: Path, links: Mapping[str, float]) -> list[Gather]:
    study = find_study(GATHERS)
    rows = fresh_rows(results, study)
    rows = rows[rows["metric"] == GATHERS_CLOCK].sort_values("median")
    variants = {
        variant.name: variant
        for variant in study.with_role("step", "beyond")
        if variant.constants["slot_bytes"] == variant.constants["token_bytes"]  # whole rows
    }
    fastest: dict[tuple[str, int, int, int], Gather] = {}
    for row in rows.to_dict("records"):
        case, variant = parse_case(row["case"]), variants.get(row["variant"])
        is_usual = case.keys() == {"rows", "pool_mib", "layout"} and case["layout"] == "scattered"
        if variant is None or not is_usual:
            continue
        size, count = variant.constants["token_bytes"], int(case["rows"])
        machine, pool, seconds = str(row["machine"]), int(case["pool_mib"]) * 2**20, row["median"]
        if size * count / seconds > links.get(machine, math.inf):
            continue  # a row that repeats is fetched once
        gather = Gather(machine, variant.name, size, count, pool, seconds)
        fastest.setdefault((machine, size, count, pool), gather)
    return list(fastest.values())
