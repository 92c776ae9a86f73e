"""Named properties of machines, and which of them differ between two machines.

A property is a figure, or follows from a few figures of the same run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from analysis.base.equivalence import Decided, decide
from analysis.base.statistics import Estimate, estimate
from analysis.results.model.translation import ENTRY_BYTES
from analysis.site.facts.basis import MIN_HOSTS, figures_by_run, is_enough
from analysis.site.facts.comparison import Comparison, Subject
from analysis.site.facts.datasheets import (
    CHIP,
    HOST,
    LINK,
    MEMORY,
    SOFTWARE,
    Expectation,
    expectation,
)
from analysis.site.facts.study_facts import StudyFacts


@dataclass(frozen=True)
class Cell:
    """A metric of a variant in a case."""

    study: str
    variant: str
    case: str
    metric: str = "gpu_time"


@dataclass(frozen=True)
class Property:
    """A property in `unit`, computed from the figures of `cells` in one run by `value`. Without a
    `value`, it is the figure of the only cell, or its payload rate if the unit is B/s.

    `bound` is the part of the machine that limits it, one of those in `datasheets`.
    """

    name: str
    title: str
    bound: str
    unit: str
    cells: tuple[Cell, ...]
    value: Callable[..., float] | None = None


@dataclass(frozen=True)
class Measured:
    """A property on a machine: its value in each run, and the number of hosts."""

    by_run: Sequence[float]
    hosts: int

    @property
    def is_settled(self) -> bool:
        return is_enough(len(self.by_run), self.hosts)

    def estimate(self) -> Estimate:
        """The median; the interval predicts another run on any host."""
        found = estimate([[value] for value in self.by_run])
        return found if self.is_settled else Estimate(found.value, math.nan, math.nan)


@dataclass(frozen=True)
class Compared:
    """A property on two machines, the decision, and what the datasheets let one expect."""

    of: Property
    one: Measured
    other: Measured
    decided: Decided
    expected: Expectation


def _lines(count: int, reads: int) -> Cell:
    """Reads of single lines, each in another page."""
    case = f"stride_kib=64,count={count},order=random,reads={reads}"
    return Cell("translation", "independent_lines", case)


def _rows(
    pool_mib: int, row_bytes: int = 656, order: str = "random", variant: str = "rows"
) -> Cell:
    case = f"pool_mib={pool_mib},row_bytes={row_bytes},order={order},rows=262144"
    return Cell("translation", variant, case)


def _copy(direction: str, size: int = 64 << 20) -> Cell:
    case = f"size={size},count=1,direction={direction}"
    return Cell("transfers", "pinned_loop", case, "host_time")


def _gather(requests: int, rows: int) -> Cell:
    case = f"bs={requests},topk={rows},draw=with_replacement"
    return Cell("h2d_gather", "v3_loads_first", case)


def _pool(variant: str, layout: str, metric: str = "gpu_time") -> Cell:
    case = f"rows=262144,pool_mib=40960,layout={layout}"
    return Cell("pool_gather", variant, case, metric)


def _unpack(variant: str) -> Cell:
    return Cell("unpack", variant, "chunks=8,kib=512,fragment=4096,src=0,dst=0", "host_time")


def _allocator(variant: str, pattern: str, metric: str = "op_time") -> Cell:
    return Cell("phases", variant, f"pattern={pattern}", metric)


READS: Final = 1 << 20
"""Reads of the cases from which walks and reach follow."""
REACH_COUNTS: Final = (12288, 16384)
"""Pages of the two pools, little larger than the reach, from which the reach follows."""
PIECES: Final = (1024, 16384)
"""Sizes in bytes between which a batched copy of pieces becomes slower than a loop."""


def _reach_bytes(fewer: float, more: float) -> float:
    """Bytes whose translations the GPU holds, from the times of random reads over two pools of
    REACH_COUNTS pages.

    Of `count` pages, `held` translations are cached, so a read takes `walk * (1 - held / count)`
    where walks limit it. Two times determine both unknowns.
    """
    counts = REACH_COUNTS
    quotient = more / fewer
    held = (quotient - 1) / (quotient / counts[0] - 1 / counts[1])
    return held * ENTRY_BYTES


def _crossover(*times: float) -> float:
    """Size at which the first two of four times, of a batched copy for both sizes of PIECES, cross
    the other two, of a loop: by interpolation between logarithms. NaN if they do not cross."""
    below, above = math.log(times[0] / times[2]), math.log(times[1] / times[3])
    if below * above > 0:
        return math.nan
    share = below / (below - above)
    return math.exp(math.log(PIECES[0]) * (1 - share) + math.log(PIECES[1]) * share)


def _quotient(one: float, other: float) -> float:
    return one / other


_BATCHED: Final = tuple(
    Cell("transfers", variant, f"size={size},count=256,direction=h2d", "host_time")
    for variant in ("pinned_batch", "pinned_loop")
    for size in PIECES
)
_GROWING: Final = tuple(
    Cell("fragmentation", "torch_caching", "pattern=growing_batch", metric)
    for metric in ("reserved", "requested")
)
_ON_DEVICE: Final = Cell(
    "translation",
    "independent_lines",
    "stride_kib=64,count=32768,order=random,memory=device,reads=262144",
)
_ALIASED: Final = Cell(
    "translation",
    "independent_lines",
    "stride_kib=64,count=16384,order=random,memory=aliased,reads=262144",
)
_ROUND_TRIP: Final = Cell(
    "translation", "dependent_lines", "stride_kib=64,count=256,order=random,reads=8192"
)
_WALK: Final = Cell(
    "translation", "dependent_lines", "stride_kib=64,count=524288,order=random,reads=8192"
)

PROPERTIES: Final = (
    Property("copy_in", "copy of 64 MiB to the GPU", LINK, "B/s", (_copy("h2d"),)),
    Property("copy_out", "copy of 64 MiB from the GPU", LINK, "B/s", (_copy("d2h"),)),
    Property("copy_16", "copy of 16 MiB to the GPU", LINK, "B/s", (_copy("h2d", 16 << 20),)),
    Property("gather_128", "SM gather for 128 requests", LINK, "B/s", (_gather(128, 2048),)),
    Property("gather_16", "SM gather for 16 requests", LINK, "B/s", (_gather(16, 2048),)),
    Property("gather_1", "SM gather for one request", LINK, "s", (_gather(1, 2048),)),
    Property("gather_512", "SM gather of 512 rows", LINK, "s", (_gather(1, 512),)),
    Property(
        "round_trip",
        "latency of a read from host memory",
        LINK,
        "s",
        (_ROUND_TRIP,),
        lambda seconds: seconds / 8192,
    ),
    Property(
        "walk_latency",
        "latency of a read with a page walk",
        CHIP,
        "s",
        (_WALK,),
        lambda seconds: seconds / 8192,
    ),
    Property(
        "reach",
        "TLB reach",
        CHIP,
        "B",
        tuple(_lines(count, READS) for count in REACH_COUNTS),
        _reach_bytes,
    ),
    Property(
        "walks",
        "reads a second, each with a page walk",
        CHIP,
        "1/s",
        (_lines(524288, READS),),
        lambda seconds: READS / seconds,
    ),
    Property("pool_1", "SM gather from 1 GiB", CHIP, "B/s", (_rows(1024),)),
    Property("pool_4", "SM gather from 4 GiB", CHIP, "B/s", (_rows(4096),)),
    Property("pool_16", "SM gather from 16 GiB", CHIP, "B/s", (_rows(16384),)),
    Property("pool_40", "SM gather from 40 GiB", CHIP, "B/s", (_rows(40960),)),
    Property(
        "pool_40_128", "SM gather from 40 GiB, rows of 128 bytes", CHIP, "B/s", (_rows(40960, 128),)
    ),
    Property(
        "pool_40_1024", "SM gather from 40 GiB, rows of 1 KiB", CHIP, "B/s", (_rows(40960, 1024),)
    ),
    Property(
        "ascending",
        "SM gather from 40 GiB, ascending rows",
        CHIP,
        "B/s",
        (_rows(40960, order="ascending"),),
    ),
    Property(
        "streaming",
        "SM gather from 40 GiB, with streaming hints",
        CHIP,
        "B/s",
        (_rows(40960, variant="rows_streaming"),),
    ),
    Property(
        "aliased",
        "reads a second of aliased pages",
        CHIP,
        "1/s",
        (_ALIASED,),
        lambda seconds: (1 << 18) / seconds,
    ),
    Property(
        "four_rows",
        "SM gather from 40 GiB, four rows together",
        CHIP,
        "B/s",
        (_pool("loads_first", "pages_4"),),
    ),
    Property(
        "both_engines",
        "gather from 40 GiB, by CPU and SMs",
        HOST,
        "B/s",
        (_pool("both_engines", "scattered", "host_time"),),
    ),
    Property(
        "packed",
        "gather from 40 GiB, by the CPU",
        HOST,
        "B/s",
        (_pool("packed_by_cpu", "scattered", "host_time"),),
    ),
    Property(
        "device_lines",
        "random reads a second from GPU memory",
        MEMORY,
        "1/s",
        (_ON_DEVICE,),
        lambda seconds: (1 << 18) / seconds,
    ),
    Property(
        "unpack_first",
        "unpack, first step",
        HOST,
        "s",
        (_unpack("s0_everything_per_chunk"),),
    ),
    Property("unpack_best", "unpack, last step", HOST, "s", (_unpack("s4_batched"),)),
    Property(
        "crossover",
        "piece size from which a loop beats batched copies",
        HOST,
        "B",
        _BATCHED,
        _crossover,
    ),
    Property(
        "malloc",
        "allocation, training pattern",
        HOST,
        "s",
        (_allocator("p4_final", "transformer_training"),),
    ),
    Property(
        "torch_malloc",
        "allocation by PyTorch, training pattern",
        HOST,
        "s",
        (_allocator("torch_caching", "transformer_training"),),
    ),
    Property(
        "first_malloc",
        "first allocation of a size",
        HOST,
        "s",
        (_allocator("p4_final", "first_allocation"),),
    ),
    Property(
        "training",
        "training step",
        HOST,
        "s",
        (Cell("training", "torch_caching", "work=training_small", "host_time"),),
    ),
    Property(
        "reserved",
        "memory reserved by PyTorch, training pattern",
        SOFTWARE,
        "B",
        (_allocator("torch_caching", "transformer_training", "reserved"),),
    ),
    Property(
        "external_fragmentation",
        "external fragmentation, training pattern",
        SOFTWARE,
        "1",
        (_allocator("torch_caching", "transformer_training", "external_fragmentation"),),
    ),
    Property(
        "fragmentation",
        "memory reserved over requested, growing batch",
        SOFTWARE,
        "1",
        _GROWING,
        _quotient,
    ),
)
"""Every compared property."""


def compare_properties(comparison: Comparison, one: Subject, other: Subject) -> list[Compared]:
    """The properties that both machines have, with decisions over the whole table."""
    found = []
    for of in PROPERTIES:
        first, second = (
            measure(comparison.studies, subject.machine, of) for subject in (one, other)
        )
        if first.by_run and second.by_run:
            found.append((of, first, second))
    decided = decide([_decidable(first, second) for _, first, second in found])
    described = [comparison.inputs.machines[subject.machine] for subject in (one, other)]
    return [
        Compared(of, first, second, decision, expectation(of.bound, *described))
        for (of, first, second), decision in zip(found, decided, strict=True)
    ]


def without_runs(found: Sequence[Compared]) -> list[Property]:
    """Properties that are not in the comparison `found`."""
    names = {one.of.name for one in found}
    return [of for of in PROPERTIES if of.name not in names]


def _decidable(one: Measured, other: Measured) -> tuple[Sequence[float], Sequence[float]]:
    """The runs of both sides; of one run each if either has fewer than MIN_HOSTS hosts."""
    if min(one.hosts, other.hosts) < MIN_HOSTS:
        return one.by_run[:1], other.by_run[:1]
    return one.by_run, other.by_run


def measure(studies: Mapping[str, StudyFacts], machine: str, of: Property) -> Measured:
    """The property in every run that has all of its cells, and is fresh."""
    found = [_runs_of(studies, machine, cell) for cell in of.cells]
    hosts = min(hosts for _, hosts in found)
    common = [run for run in found[0][0] if all(run in runs for runs, _ in found)]
    values = [_value(studies, of, [runs[run] for runs, _ in found]) for run in common]
    known = [value for value in values if not math.isnan(value)]
    return Measured(known, hosts if known else 0)


def _value(studies: Mapping[str, StudyFacts], of: Property, figures: Sequence[float]) -> float:
    if of.value is not None:
        return of.value(*figures)
    (cell,), (figure,) = of.cells, figures
    if of.unit != "B/s":
        return figure
    return studies[cell.study].study.payloads[cell.variant, cell.case] / figure


def _runs_of(
    studies: Mapping[str, StudyFacts], machine: str, cell: Cell
) -> tuple[dict[str, float], int]:
    """The figure of a cell by run, and the number of hosts. Runs are numbered if not all kept ones
    have the cell."""
    if cell.study not in studies:
        return {}, 0
    figures = studies[cell.study].figures
    row = figures.find(machine, cell.variant, cell.case, cell.metric)
    if row is None or row.stale:
        return {}, 0
    named = {run.run: figure for run, figure in figures.by_run(row)}
    numbered = {str(place): figure for place, figure in enumerate(figures_by_run(row))}
    return named or numbered, row.hosts
