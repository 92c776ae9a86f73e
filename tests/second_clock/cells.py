"""The cells that both clocks time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.base.expression import evaluate
from analysis.measure.cell import Cell
from analysis.study import Study
from analysis.study.description import Case, parse_case

TOLERANCE: Final = {"gpu_time": 0.03, "host_time": 0.05}
"""Largest difference between the medians of the two clocks, as a share, by metric."""


@dataclass(frozen=True)
class Timed:
    """A variant and case, which need not be in study.yaml, and the metrics to compare."""

    study: str
    variant: str
    case: str
    metrics: tuple[str, ...] = ("gpu_time", "host_time")

    def cell(self, study: Study) -> Cell:
        """The engine's cell of this variant and case."""
        variant, values = study.variant(self.variant), parse_case(self.case)
        payload = evaluate(variant.payload, {**variant.constants, **values})
        return Cell(variant, Case(values, payload, "full"))

    def is_of(self, cell: Cell) -> bool:
        return (self.variant, self.case) == (cell.variant.name, cell.case.id)


_GATHER = "bs=128,topk=2048,draw=with_replacement"
_FEW = "bs=1,topk=512,draw=with_replacement"
_HOT_SET = "requests=1,topk=2048,slots=4096,misses={misses},pool_mib=188,layout=scattered"

CELLS: Final = (
    Timed("method", "empty_kernel", "bytes=0"),
    # Its reset rests for milliseconds, after which host times of one process differ by a fifth.
    Timed("method", "copy_written_here", "bytes=98304", ("gpu_time",)),
    Timed("h2d_gather", "v4_grid_stride", _GATHER),
    Timed("h2d_gather", "ceiling_sm_copy", _GATHER),
    # Behind a held stream, a copy engine polls, so that device times of short copies vary.
    Timed("h2d_gather", "ceiling_copy_engine", _FEW, ("host_time",)),
    Timed("h2d_gather", "batch_memcpy", _FEW, ("host_time",)),
    Timed("unpack", "descriptors_in_place", "chunks=8,kib=512,fragment=4096,src=0,dst=0"),
    Timed("hot_set", "v5_several_blocks", _HOT_SET.format(misses=16)),
    Timed("hot_set", "v5_several_blocks", _HOT_SET.format(misses=410)),
    Timed("pool_gather", "loads_first", "rows=2048,pool_mib=40960,layout=scattered"),
)
