"""How well an adviser is judged, and how well measured times of the very same cells would do.

The second is a ceiling: no adviser knows more than the times of other hosts, or of other rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from analysis.api.study import Study, parse_case
from analysis.api.tables import chosen, collect, fresh

from .adviser import DIRECTIONS, METRIC, Job
from .held_out import NEAR, NEAR_TIME, PREFIXES
from .kinds import memory_of
from .measured import PIECE_KEYS, PLACE_KEYS, ways
from .trial import HELD_OUT_BYTES, HELD_OUT_COUNTS, HELD_OUT_SIZES, MEMORY

JUDGED: Final = "pinned_adviser"
FAR: Final = 0.2
"""No advised way should be slower than the fastest by more than this share."""
SMALL_BYTES: Final = 2**20
"""Below this payload, a launch and the wait for it take most of the time."""
OTHER_ROUNDS: Final = "other rounds"
OTHER_HOSTS: Final = "other hosts"
HOST: Final = ["cell", "host"]
ROUND: Final = [*HOST, "run", "round"]


@dataclass(frozen=True)
class Score:
    """Choices in `cells` cells of `runs` runs, compared with the fastest way and its time.

    near: share of cells whose fastest way is exceeded by at most NEAR; not_far: by at most FAR
    worst: largest time of a chosen way over the fastest one's
    timed: share of cells where the chosen way's time is predicted within NEAR_TIME; `timed_small`
        and `timed_large` split it at SMALL_BYTES; NaN: not known
    confused: the most frequent choice that is not near, and the way that was fastest
    """

    cells: int
    runs: int
    near: float
    not_far: float
    worst: float
    timed: float = math.nan
    timed_small: float = math.nan
    timed_large: float = math.nan
    confused: str = ""


def scores(results: Path, study: Study) -> Mapping[str, Mapping[str, Score]]:
    """Scores by machine and source: OTHER_ROUNDS, OTHER_HOSTS and those of PREFIXES.

    Only machines where an adviser was judged. A ceiling is missing where no cell has two rounds in
    one run, or two hosts.
    """
    samples = collect(results, {study.name: study}, only={study.name}).samples
    if samples.empty:
        return {}
    samples = fresh(chosen(samples))
    rounds = _rounds(samples, study)
    found = {}
    for machine, judged in samples[samples["variant"] == JUDGED].groupby("machine"):
        here = rounds[rounds["machine"] == machine]
        found[str(machine)] = dict(_ceilings(here)) | dict(_held_out(judged))
    return found


def _held_out(judged: pd.DataFrame) -> Iterator[tuple[str, Score]]:
    """The score of each source of advice in the held-out cells."""
    for source, prefix in PREFIXES.items():
        rows = judged[judged["metric"] == f"{prefix}_loss"]
        if rows.empty:
            continue
        losses = rows["value"].to_numpy()
        of_round = judged[judged["metric"] == f"{prefix}_predicted"]
        shares = of_round.set_index(["run", "round"])["value"]
        cells = rows.groupby(["run", "round"]).size().reindex(shares.index)
        timed = float((shares * cells).sum() / cells.sum()) if len(shares) else math.nan
        near, not_far = (float((losses <= 1 + limit).mean()) for limit in (NEAR, FAR))
        runs = rows["run"].nunique()
        yield source, Score(len(losses), runs, near, not_far, float(losses.max()), timed)


def _rounds(samples: pd.DataFrame, study: Study) -> pd.DataFrame:
    """The median host time of each round of a way from pinned memory, in cells as large as those
    that are held out.

    Columns machine, cell, is_small, variant, host, run, round, seconds.
    """
    pinned = [way.name for way in ways(study) if memory_of(way.name) == MEMORY]
    rows = samples[
        (samples["metric"] == METRIC)
        & samples["variant"].isin(pinned)
        & (samples["verified"].astype(int) == 1)
    ]
    jobs = {case: job for case in rows["case"].unique() if (job := _job(case)) is not None}
    rows = rows[rows["case"].isin(jobs)]
    rows = rows.assign(
        cell=rows["case"].map(lambda case: str(jobs[case])),
        is_small=rows["case"].map(lambda case: jobs[case].payload_bytes < SMALL_BYTES),
    )
    keys = ["machine", "cell", "is_small", "variant", "host", "run", "round"]
    return rows.groupby(keys)["value"].median().rename("seconds").reset_index()


def _job(case: str) -> Job | None:
    """The pieces of a case; None if it has other keys or is outside of the held-out range."""
    values = {**PLACE_KEYS, **parse_case(case)}
    if set(values) != PIECE_KEYS | set(PLACE_KEYS) or values["direction"] not in DIRECTIONS:
        return None
    size, count = int(values["size"]), int(values["count"])
    is_held = HELD_OUT_SIZES[0] <= size <= HELD_OUT_SIZES[1] and count >= HELD_OUT_COUNTS[0]
    if not is_held or size * count > HELD_OUT_BYTES:
        return None
    place = str(values["direction"]), str(values["host"]), str(values["device"])
    return Job(size, count, *place, is_busy=bool(values["busy"]))


def _ceilings(rounds: pd.DataFrame) -> Iterator[tuple[str, Score]]:
    """The scores of a choice by other rounds of the same run, and by other hosts."""
    keys = ["cell", "is_small", "variant", "host", "run"]
    by_round = rounds.set_index([*keys, "round"])["seconds"]
    by_run = by_round.groupby(keys).median()
    by_host = by_run.groupby(keys[:-1]).median()
    runs = rounds["run"].nunique()
    for source, times, unit, target in (
        (OTHER_ROUNDS, by_round, "round", ROUND),
        (OTHER_HOSTS, by_host, "host", HOST),
    ):
        chosen_ways = _choices(times, unit, target)
        if not chosen_ways.empty:
            yield source, _of_choices(chosen_ways, runs)


def _choices(times: pd.Series, unit: str, target: list[str]) -> pd.DataFrame:
    """The way that the median of all other units finds fastest, for each cell of a unit.

    `times` by variant and the levels of `target`, of which `unit` is one. Columns `is_small`,
    `variant`, `fastest`, `loss`, and `is_timed`. Cells with one way are left out.
    """
    table = times.unstack(unit)
    others = pd.concat(
        {one: table.drop(columns=one).median(axis=1) for one in table.columns}, names=[unit]
    )
    both = pd.DataFrame({"seconds": times, "predicted": others.reorder_levels(times.index.names)})
    both = both.dropna().reset_index()
    both = both[both.groupby(target)["seconds"].transform("size") > 1]
    cells = both.groupby(target)
    found = both.loc[cells["predicted"].idxmin()].reset_index(drop=True)
    best = both.loc[cells["seconds"].idxmin()].reset_index(drop=True)
    error = np.abs(np.log(found["predicted"] / found["seconds"]))
    return found.assign(
        fastest=best["variant"],
        loss=found["seconds"] / best["seconds"],
        is_timed=error <= math.log1p(NEAR_TIME),
    )


def _of_choices(choices: pd.DataFrame, runs: int) -> Score:
    """Shares of cells with small and with large payloads count as in the held-out draw."""
    halves = [choices[choices["is_small"] == is_small] for is_small in (True, False)]
    small = small_share()

    def weighted(column: pd.Series) -> float:
        shares = [float(column[half.index].mean()) if len(half) else math.nan for half in halves]
        return small * shares[0] + (1 - small) * shares[1]

    timed = [float(half["is_timed"].mean()) if len(half) else math.nan for half in halves]
    return Score(
        cells=len(choices),
        runs=runs,
        near=weighted(choices["loss"] <= 1 + NEAR),
        not_far=weighted(choices["loss"] <= 1 + FAR),
        worst=float(choices["loss"].max()),
        timed=weighted(choices["is_timed"]),
        timed_small=timed[0],
        timed_large=timed[1],
        confused=_confused(choices[choices["loss"] > 1 + NEAR]),
    )


def _confused(misses: pd.DataFrame) -> str:
    """`a instead of b: 13 of 34`: the most frequent pair of ways."""
    if misses.empty:
        return ""
    pairs = misses.groupby(["variant", "fastest"]).size().sort_values(ascending=False)
    way, fastest = (str(name).removeprefix(f"{MEMORY}_") for name in pairs.index[0])
    return f"{way} instead of {fastest}: {pairs.iloc[0]} of {len(misses)}"


def small_share() -> float:
    """Share of the held-out draw with a payload below SMALL_BYTES.

    Sizes and counts are uniform in their logarithms, within the limit of a cell's payload.
    """
    sizes = np.geomspace(*HELD_OUT_SIZES, 1000)
    min_count, max_count = HELD_OUT_COUNTS
    counts = np.minimum(max_count, HELD_OUT_BYTES / sizes)
    limit = np.clip(SMALL_BYTES / sizes, min_count, counts)
    return float((np.log(limit / min_count) / np.log(counts / min_count)).mean())
