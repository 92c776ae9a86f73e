"""Times of ways on this machine: a calibration of some seconds, and cells that are on no grid."""

from __future__ import annotations

import gc
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from analysis.api.measure import Bound, Skip, Trials
from analysis.api.study import Case, HotpathError, Study, Variant, load_config

from .adviser import (
    DIRECTIONS,
    LAYOUTS,
    METRIC,
    ROW_METHODS,
    VECTOR_BYTES,
    Adviser,
    Job,
    Situation,
    make_adviser,
)
from .cost import Timing
from .kinds import memory_of, method_of
from .measured import (
    Place,
    advisers_in,
    alignment_class,
    can_measure,
    case_of,
    is_kernel,
    places_of,
    ways,
)

Bind = Callable[[Variant, Case], Bound]
"""Binds a variant to a case of this machine, until the next call."""
Timed = Mapping[str, float]
"""Seconds by metric."""

WARM_UP_S: Final = 0.3
CALIBRATION_S: Final = 5.5
"""Limit of the timings of a calibration; the start of the program and the fit come on top."""
FIRST_CELLS: Final = (
    *((4096, 1024), (512, 16), (24576, 256), (65536, 64)),
    *((512, 8192), (28672, 256), (16384, 256), (24576, 16)),
)
UNALIGNED_CELLS: Final = (
    *((528, 8192), (4112, 1024), (528, 64), (16400, 256)),
    *((1168, 4096), (4099, 256), (519, 2048), (519, 16)),
)
"""For kernels only: pieces that are no whole cache lines, or no whole vectors."""
MORE_CELLS: Final = (
    *((1024, 4096), (131072, 32), (4096, 16), (2048, 2048), (8192, 512)),
    *((28672, 16), (64, 16384), (4096, 8192), (262144, 16), (1048576, 1)),
)
CALIBRATION_CELLS: Final = (*FIRST_CELLS, *UNALIGNED_CELLS, *MORE_CELLS)
"""Sizes and counts, the most important first: the budget may end before the last."""
BUSY_CELLS: Final = FIRST_CELLS[:4]
"""Those that are also timed on a busy stream."""
SAMPLES: Final = 3
SLOW_S: Final = 0.015
"""A launch that takes longer is timed once, without launches before it: they change little."""

HELD_OUT_CELLS: Final = 40
HELD_OUT_SIZES: Final = (512, 131_072)
HELD_OUT_COUNTS: Final = (16, 100_000)
HELD_OUT_BYTES: Final = 32 * 2**20
"""Limit of the payload of a cell, whose bytes are all checked."""
HELD_OUT_S: Final = 35.0
"""Limit of their timings by the program: a slow host measures fewer cells."""
RUN_S: Final = 15.0
"""The same in a run of the study."""
PASSES: Final = 2
"""Passes over the ways of a held-out cell, each in another order."""
CLOSE: Final = 1.3
CLOSE_PASSES: Final = 6
"""Further passes over the ways whose time is at most CLOSE times the fastest one's: the fastest of
several noisy medians is too fast."""
MEMORY: Final = "pinned"
"""The memory whose ways are compared: an engine can choose the way, but hardly its memory."""

DMA_MIN_BYTES: Final = 28 * 1024
KERNEL_MIN_COUNT: Final = 16
"""Constants of vLLM (pull request 42212): to the device, a kernel moves at least KERNEL_MIN_COUNT
pieces below DMA_MIN_BYTES, and one batched call moves all others."""


def pinned_ways(study: Study) -> list[Variant]:
    """The ways of moving pieces from and to pinned memory.

    Left out are those that make the same calls as one for a list of places.
    """
    found = [one for one in ways(study) if memory_of(one.name) == MEMORY and places_of(one)]
    names = {variant.name for variant in found}
    return [
        variant
        for variant in found
        if method_of(variant.name) in ROW_METHODS
        or f"{MEMORY}_list_{method_of(variant.name)}" not in names
    ]


@dataclass(frozen=True)
class Bench:
    """Times ways through `bind`, which a trial of the study provides.

    `faults` are ways with a wrong output, which are left out from then on.
    """

    bind: Bind
    faults: dict[str, str] = field(default_factory=dict)

    def require_right(self) -> None:
        """HotpathError if the output of a way was wrong."""
        if self.faults:
            wrong = "; ".join(f"{name}: {fault}" for name, fault in self.faults.items())
            raise HotpathError(f"wrong output: {wrong}")

    def warm_up(self, variant: Variant) -> None:
        """Raise the clocks of an idle GPU."""
        (place, *_) = sorted(places_of(variant))
        bound = self.bind(variant, case_of(variant, Job(4096, 256, *place)))
        until = time.perf_counter() + WARM_UP_S
        while time.perf_counter() < until:
            bound.launch()

    def times(self, variant: Variant, job: Job, *, is_checked: bool = False) -> Sequence[Timed]:
        """Host times of launches, after every output byte was checked, unless it `is_checked`.

        Skip for a wrong output, and if this machine cannot run the way.
        """
        if variant.name in self.faults:
            raise Skip(self.faults[variant.name])
        bound = self.bind(variant, case_of(variant, job))
        if is_checked:
            first_s = _launch_s(bound)
        else:
            first_s = bound.poison_and_launch()
            if wrong := bound.check():
                self.faults[variant.name] = f"{job}: {wrong}"
                raise Skip(wrong)
        is_slow = first_s > SLOW_S
        if not is_slow:
            bound.launch()
        with _without_collector():
            times = list(bound.host_times(1 if is_slow else 1 + SAMPLES))
        return times[-SAMPLES:]


def _launch_s(bound: Bound) -> float:
    started = time.perf_counter()
    bound.launch()
    return time.perf_counter() - started


@contextmanager
def _without_collector() -> Iterator[None]:
    was_enabled = gc.isenabled()  # a run of the study is without it
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def calibrate(bench: Bench, variants: Sequence[Variant], machine: str, budget_s: float) -> Adviser:
    """Time few cells of every way within the budget, and fit the adviser to them."""
    until = time.perf_counter() + budget_s
    found: dict[tuple[Situation, str], list[Timing]] = defaultdict(list)
    skipped: set[str] = set()
    bench.warm_up(variants[0])
    for (size, count), (variant, place) in product(
        CALIBRATION_CELLS, _calibration_places(variants)
    ):
        if time.perf_counter() > until:
            break
        if place[-1] and (size, count) not in BUSY_CELLS:
            continue
        alignment = alignment_class(variant, size)
        is_for_kernels = (size, count) in UNALIGNED_CELLS
        if variant.name in skipped or (is_for_kernels and not is_kernel(variant)):
            continue
        try:
            times = bench.times(variant, Job(size, count, *place))
        except (Skip, ValueError):  # not here, or not such pieces
            skipped.add(variant.name)
            continue
        situation = Situation(variant.name, *place, alignment)
        for metric in times[0]:
            seconds = median(one[metric] for one in times)
            found[situation, metric].append(Timing(size, count, seconds))
    return make_adviser(machine, "calibration", found, {v.name: v.title for v in variants})


def _calibration_places(variants: Sequence[Variant]) -> list[tuple[Variant, Place]]:
    """Each way in the least regular layout that it can move, by direction and stream; those of one
    place follow each other, because they share its pieces."""
    found: dict[tuple[str, str, bool], tuple[Variant, Place]] = {}
    for variant in variants:
        for place in sorted(places_of(variant), key=lambda at: (at[1], at[2])):
            direction, _, _, is_busy = place
            found[variant.name, direction, is_busy] = variant, place
    return sorted(found.values(), key=lambda at: at[1])


def draw_jobs(seed: int, variants: Sequence[Variant], cells: int) -> list[Job]:
    """Jobs drawn by `seed` whose size and count are on no grid, and that two or more ways can do.

    Sizes and counts are uniform in their logarithms.
    """
    moved = (case for one in variants for case in one.cases if {"size", "count"} <= {*case.values})
    known = {*CALIBRATION_CELLS, *((case.number("size"), case.number("count")) for case in moved)}
    rng = np.random.default_rng(seed)
    grid_sizes, grid_counts = ({cell[i] for cell in known} for i in (0, 1))
    jobs: list[Job] = []
    while len(jobs) < cells:
        size = _between(rng, *HELD_OUT_SIZES) // VECTOR_BYTES * VECTOR_BYTES
        count = _between(rng, HELD_OUT_COUNTS[0], min(HELD_OUT_COUNTS[1], HELD_OUT_BYTES // size))
        job = Job(
            size=size,
            count=count,
            direction=str(rng.choice(DIRECTIONS)),
            host=str(rng.choice(LAYOUTS)),
            device=str(rng.choice(LAYOUTS)),
            is_busy=bool(rng.integers(2)),
        )
        is_rivalry = sum(can_measure(variant, job) for variant in variants) > 1
        is_known = size in grid_sizes or count in grid_counts
        if is_rivalry and not is_known and job == job.as_one_piece():
            jobs.append(job)
    return jobs


def _between(rng: np.random.Generator, low: int, high: int) -> int:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


@dataclass(frozen=True)
class HeldOut:
    """A way in a held-out cell: its measured time and, by each adviser, its predicted one.

    NaN: that adviser does not know the way. `is_constants` marks the choice by vLLM's constants.
    """

    seed: int
    cell: int
    size: int
    count: int
    direction: str
    host: str
    device: str
    is_busy: int
    variant: str
    measured_s: float
    by_results_s: float
    by_calibration_s: float
    is_constants: int


def calibrate_here(here: Trials, bench: Bench) -> Adviser:
    """Calibrate the adviser for the machine of a trial."""
    return calibrate(bench, able_ways(here), here.machine, CALIBRATION_S)


def hold_out(
    here: Trials,
    bench: Bench,
    seed: int,
    calibrated: Adviser,
    limit_s: float,
    results: Path | None = None,
) -> list[HeldOut]:
    """Measure every way in cells drawn by the seed, beside the advice of a calibration.

    `results` is the folder of the machine's results. Their advice is judged if they have every
    way that this machine can run.
    """
    variants = able_ways(here)
    advisers = {"calibration": calibrated}
    try:
        known = advisers_in(results or load_config({}).results, here.study)
    except HotpathError:
        known = []
    names = {variant.name for variant in variants}
    for one in known:
        if one.machine == here.machine and names <= {way.variant for way in one.ways}:
            advisers["results"] = one
    jobs = draw_jobs(seed, variants, HELD_OUT_CELLS)
    return measure_jobs(bench, variants, jobs, advisers, seed, limit_s)


def able_ways(here: Trials) -> list[Variant]:
    """The ways from pinned memory that this machine can run."""
    return [variant for variant in pinned_ways(here.study) if here.unmet(variant) is None]


def measure_jobs(
    bench: Bench,
    variants: Sequence[Variant],
    jobs: Sequence[Job],
    advisers: Mapping[str, Adviser],
    seed: int,
    limit_s: float,
) -> list[HeldOut]:
    """Measure every way of the jobs, beside its time by each adviser, until the time is up."""
    order = np.random.default_rng(seed)
    until = time.perf_counter() + limit_s
    rows: list[HeldOut] = []
    for cell, job in enumerate(jobs):
        if time.perf_counter() > until:
            break
        rows += _cell(_measured(bench, variants, job, order), job, advisers, seed, cell)
    return rows


def _measured(
    bench: Bench, variants: Sequence[Variant], job: Job, order: np.random.Generator
) -> dict[str, float]:
    """The median time of each way that can do the job."""
    able = [variant for variant in variants if can_measure(variant, job)]
    times: dict[str, list[float]] = defaultdict(list)

    def measure(rivals: Sequence[Variant], *, is_checked: bool) -> None:
        for at in order.permutation(len(rivals)):
            variant = rivals[int(at)]
            try:
                found = bench.times(variant, job, is_checked=is_checked)
            except (Skip, ValueError):
                continue
            times[variant.name] += (one[METRIC] for one in found)

    for number in range(PASSES):
        measure(able, is_checked=number > 0)
    limit = CLOSE * min((median(found) for found in times.values()), default=0.0)
    close = [one for one in able if one.name in times and median(times[one.name]) <= limit]
    for _ in range(CLOSE_PASSES):
        measure(close, is_checked=True)
    return {name: median(found) for name, found in times.items()}


def _cell(
    measured: Mapping[str, float], job: Job, advisers: Mapping[str, Adviser], seed: int, cell: int
) -> Iterator[HeldOut]:
    predicted = {
        source: {one.variant: one.seconds for one in adviser.advise(job, MEMORY)}
        for source, adviser in advisers.items()
    }
    chosen = by_constants(job, list(measured))
    for variant, seconds in measured.items():
        yield HeldOut(
            seed=seed,
            cell=cell,
            size=job.size,
            count=job.count,
            direction=job.direction,
            host=job.host,
            device=job.device,
            is_busy=int(job.is_busy),
            variant=variant,
            measured_s=seconds,
            by_results_s=predicted.get("results", {}).get(variant, math.nan),
            by_calibration_s=predicted.get("calibration", {}).get(variant, math.nan),
            is_constants=int(variant == chosen),
        )


def by_constants(job: Job, known: Sequence[str]) -> str:
    """The way by vLLM's constants; empty if it was not measured."""
    is_kernel = (
        job.direction == "h2d" and job.size < DMA_MIN_BYTES and job.count >= KERNEL_MIN_COUNT
    )
    wanted = "gather" if is_kernel else "batch"
    names = [f"list_{wanted}", wanted]
    return next((name for name in known if method_of(name) in names), "")


@dataclass(frozen=True)
class Verdict:
    """How well one source advised over all cells that it has an advice for.

    losses: time of the advised way over the fastest one's, by cell
    errors: predicted over measured time of the advised way, by cell; empty for constants
    """

    source: str
    losses: tuple[float, ...]
    errors: tuple[float, ...] = ()

    def share_of_losses(self, at_most: float) -> float:
        return _share([loss <= 1 + at_most for loss in self.losses])

    def share_of_errors(self, at_most: float) -> float:
        return _share([abs(math.log(error)) <= math.log1p(at_most) for error in self.errors])


def _share(holds: Sequence[bool]) -> float:
    return sum(holds) / len(holds) if holds else math.nan


def judge(rows: Sequence[HeldOut]) -> list[Verdict]:
    """A verdict on the advice from results, on that from a calibration, and on the constants."""
    cells: dict[int, list[HeldOut]] = defaultdict(list)
    for row in rows:
        cells[row.cell].append(row)
    verdicts = []
    for source in ("results", "calibration"):
        losses, errors = [], []
        for ways_of_cell in cells.values():
            known = [
                (getattr(row, f"by_{source}_s"), row.measured_s)
                for row in ways_of_cell
                if not math.isnan(getattr(row, f"by_{source}_s"))
            ]
            if known:
                predicted, measured = min(known)
                losses.append(measured / min(row.measured_s for row in ways_of_cell))
                errors.append(predicted / measured)
        if losses:
            verdicts.append(Verdict(source, tuple(losses), tuple(errors)))
    by_rule = [
        row.measured_s / min(other.measured_s for other in cells[row.cell])
        for row in rows
        if row.is_constants
    ]
    return [*verdicts, Verdict("constants", tuple(by_rule))]
