"""Measured times of ways of moving pieces, as the adviser fits them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pandas as pd

from analysis.api.study import Case, CaseValue, HotpathError, Study, Variant, parse_case
from analysis.api.tables import collect, summarise

from .adviser import (
    DIRECTIONS,
    METRIC,
    Adviser,
    Job,
    Situation,
    alignment_of,
    can_move,
    make_adviser,
    pieces_of,
)
from .cost import MIN_ERROR, Timing
from .kinds import MEMORIES, memory_of, method_of

ROLES: Final = ("step", "beyond")
METRICS: Final = ("host_time", "submit_time", "cpu_time", "gpu_time")
PIECE_KEYS: Final = {"size", "count", "direction"}
PLACE_KEYS: Final[Mapping[str, CaseValue]] = {"host": "pitched", "device": "packed", "busy": 0}
"""Keys of a case that describe the pieces' layout and the stream; without them, these hold."""

Place: TypeAlias = tuple[str, str, str, bool]
"""Direction, layout on the host and on the device, and whether the stream is busy."""


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
        & summary["metric"].isin(METRICS)
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


def advisers_of(study: Study, summary: pd.DataFrame) -> list[Adviser]:
    """An adviser for every machine with fresh results."""
    titles = {variant.name: variant.title for variant in study.variants}
    return [
        make_adviser(str(machine), "results", timings_of(study, rows), titles)
        for machine, rows in moves(study, summary).groupby("machine")
    ]


def advisers_in(results: Path, study: Study) -> list[Adviser]:
    """The same from a folder of results. HotpathError if no machine has any."""
    samples = collect(results, {study.name: study}, only={study.name}).samples
    found = advisers_of(study, summarise(samples, {study.name: study}))
    if not found:
        raise HotpathError(f"{study.name}: no fresh results on any machine")
    return found


def rows_in_place(study: Study, summary: pd.DataFrame) -> pd.DataFrame:
    """The host times in `moves` of pitched pieces that become packed, on an idle stream."""
    rows = moves(study, summary)
    is_there = [rows[key] == value for key, value in PLACE_KEYS.items()]
    return rows[np.logical_and.reduce([rows["metric"] == METRIC, *is_there])]


def timings_of(study: Study, rows: pd.DataFrame) -> Mapping[tuple[Situation, str], list[Timing]]:
    """The times of one machine's `rows`, made by `moves`, by situation and metric."""
    found: dict[tuple[Situation, str], list[Timing]] = defaultdict(list)
    for row in rows.to_dict("records"):
        size, count = int(row["size"]), int(row["count"])
        variant = study.variant(row["variant"])
        place = Situation(
            variant=variant.name,
            direction=row["direction"],
            host=row["host"],
            device=row["device"],
            is_busy=bool(row["busy"]),
            alignment=alignment_class(variant, size),
        )
        noise = _noise(row["ci_low"], row["ci_high"])
        found[place, row["metric"]].append(Timing(size, count, row["median"], noise))
    return found


def can_measure(variant: Variant, job: Job) -> bool:
    """Whether the variant has a case for the job: old ones have only that of PLACE_KEYS."""
    keys = {key for case in variant.cases for key in case.values}
    if not set(PLACE_KEYS) <= keys:
        return job.place in places_of(variant)
    return can_move(pieces_of(variant.name), job.host, job.device)


def places_of(variant: Variant) -> set[Place]:
    """Where the variant's cases move pieces."""
    keys = {*PIECE_KEYS, *PLACE_KEYS}
    moved = [case.values for case in variant.cases if PIECE_KEYS <= set(case.values) <= keys]
    places = ([values.get(key, start) for key, start in PLACE_KEYS.items()] for values in moved)
    return {
        (str(values["direction"]), str(host), str(device), bool(busy))
        for values, (host, device, busy) in zip(moved, places, strict=True)
        if values["direction"] in DIRECTIONS
    }


def case_of(variant: Variant, job: Job) -> Case:
    """The variant's case for a job, which need not be in study.yaml."""
    known = {key for case in variant.cases for key in case.values}
    place: dict[str, CaseValue] = {
        "host": job.host,
        "device": job.device,
        "busy": int(job.is_busy),
    }
    values: dict[str, CaseValue] = {
        "size": job.size,
        "count": job.count,
        "direction": job.direction,
        **{key: value for key, value in place.items() if key in known},
    }
    return Case(values, job.payload_bytes, "full")


def alignment_class(variant: Variant, size: int) -> int:
    """The alignment of pieces that the way's time at `size` stands for; 1 if it is of no effect."""
    return alignment_of(size) if is_kernel(variant) else 1


def is_kernel(variant: Variant) -> bool:
    """Whether a kernel moves the bytes, not a copy engine."""
    return variant.path.suffix == ".cu" and "batch" not in method_of(variant.name)


def _noise(low: float, high: float) -> float:
    """The relative standard error that an interval of the time amounts to."""
    if math.isnan(low) or math.isnan(high) or low <= 0:
        return MIN_ERROR
    return math.log(high / low) / 2 / 1.96
