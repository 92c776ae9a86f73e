"""The cells that both clocks time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.base.expression import evaluate
from analysis.measure.cell import Cell
from analysis.study import Study
from analysis.study.description import Case, parse_case

TOLERANCE: Final = {"gpu_time": 0.03, "host_time": 0.05, "op_time": 0.05}
"""Largest difference between the medians of the two clocks, as a share, by metric."""

BOTH: Final = ("gpu_time", "host_time")
HOST: Final = ("host_time",)
DEVICE: Final = ("gpu_time",)


@dataclass(frozen=True)
class Timed:
    """A variant and case, which need not be in study.yaml, and the metrics to compare."""

    study: str
    variant: str
    case: str
    metrics: tuple[str, ...]

    def cell(self, study: Study) -> Cell:
        """The engine's cell of this variant and case."""
        variant, values = study.variant(self.variant), parse_case(self.case)
        payload = evaluate(variant.payload, {**variant.constants, **values})
        return Cell(variant, Case(values, payload, "full"))


_HOT_SET = "requests=1,topk=2048,slots=4096,misses={misses},pool_mib=188,layout=scattered"

CELLS: Final = (
    Timed("method", "empty_kernel", "bytes=0", BOTH),
    # Its reset rests for milliseconds, after which host times of one process differ by a fifth.
    Timed("method", "copy_written_here", "bytes=98304", DEVICE),
    Timed("h2d_gather", "v4_grid_stride", "bs=128,topk=2048,draw=with_replacement", BOTH),
    Timed("h2d_gather", "ceiling_sm_copy", "bs=128,topk=2048,draw=with_replacement", BOTH),
    # Behind a held stream, a copy engine polls, so that device times of short copies vary.
    Timed("h2d_gather", "ceiling_copy_engine", "bs=1,topk=512,draw=with_replacement", HOST),
    Timed("h2d_gather", "batch_memcpy", "bs=1,topk=512,draw=with_replacement", HOST),
    Timed("unpack", "descriptors_in_place", "chunks=8,kib=512,fragment=4096,src=0,dst=0", BOTH),
    Timed("hot_set", "v5_several_blocks", _HOT_SET.format(misses=16), BOTH),
    Timed("hot_set", "v5_several_blocks", _HOT_SET.format(misses=410), BOTH),
    Timed("pool_gather", "loads_first", "rows=2048,pool_mib=40960,layout=scattered", BOTH),
    Timed("phases", "p4_final", "pattern=hot_pair", ("op_time",)),
    Timed("phases", "p4_final", "pattern=transformer_training", ("op_time",)),
)
