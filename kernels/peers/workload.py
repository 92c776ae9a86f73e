"""The parts of each launch, with sources and destinations, and the check of the destinations."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.api.measure import Operation, PythonLauncher, cores
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import Bytes
from kernels.common.outputs import POISON, wrong_row
from kernels.common.shared_pool import MIB, Buffers

from .draws import Launches, consecutive, drawn
from .gpus import connect, synchronize
from .outputs import HOST, Output, touched
from .pools import MAX_ROW_BYTES, VECTOR, Pool, Pools
from .reduction import AllReduce

ALL_REDUCE = "all_reduce"
"""Value of `how` and `beside` in a plan: an all-reduce by PyTorch's NCCL."""


class Workload:
    """Pools for the whole process, and the rows of one case at a time."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._rng = rng
        self._pools = Pools(constants["largest_mib"] * MIB, rng)
        self._buffers = Buffers()
        for memory in (self._pools, self._buffers):  # later, what frees it may be unloaded
            atexit.register(memory.close)

    def prepare(self, case: Case) -> Inputs:
        return Inputs(case, self._pools, self._buffers, self._rng)


BESIDE: Mapping[str, tuple[int, str]] = {
    "gather": (HOST, "gather"),
    "copy": (HOST, "copy"),
    "pull": (0, "gather"),
}
"""Source of a neighbour's rows, and how the neighbour moves them."""


@dataclass(frozen=True)
class Plan:
    """Roles of the GPUs in a variant; operation.h explains the values."""

    rows_in: str
    moved_by: str
    written_to: str
    how: str
    beside: str

    def movers(self, gpus: int) -> Sequence[int]:
        """The GPUs that move a share each, out of `gpus` in use."""
        return {"first": [0], "peer": [1], "all": range(gpus)}[self.moved_by]


@dataclass(frozen=True)
class Part:
    """Rows [begin, end) of a launch, which `gpu` moves from a pool to an output."""

    gpu: int
    pool: Pool
    output: Output
    launches: Launches
    begin: int
    end: int
    is_neighbour: bool = False

    @property
    def checked(self) -> np.ndarray:
        """Source rows of the check's launch."""
        rows: np.ndarray = self.launches.sources[0, self.begin : self.end]
        return rows


class Inputs:
    """The rows of one case; every launch moves another set of them."""

    def __init__(
        self, case: Case, pools: Pools, buffers: Buffers, rng: np.random.Generator
    ) -> None:
        """FieldError for an impossible size."""
        row_bytes = case.number("row_bytes")
        if row_bytes % VECTOR or not VECTOR <= row_bytes <= MAX_ROW_BYTES:
            expected = f"a multiple of {VECTOR} up to {MAX_ROW_BYTES}"
            raise FieldError(f"case {case.id}: row_bytes", expected, row_bytes)
        self._size = case.number("pool_mib") * MIB
        self._pool_rows = self._size // row_bytes
        self._shape = case.number("rows"), row_bytes
        self._pools, self._buffers = pools, buffers
        self._launches = {
            "gather": drawn(case, self._pool_rows, rng),
            "copy": consecutive(case, self._pool_rows, rng),
        }
        self._outputs: dict[tuple[str, int], Output] = {}

    def bind(self, variant: Variant, module: Any) -> Operation:
        """Skip if a pool does not fit, or if NCCL cannot reduce over these GPUs."""
        connect(variant.gpus)
        plan = Plan(**module.plan)
        parts = self._parts(plan, variant.gpus)
        taken = [self._in_module(module, part) for part in parts]
        bound = module.Bound(taken, gpus=variant.gpus, cpus=cores())
        if ALL_REDUCE not in (plan.how, plan.beside):
            return Gather(bound, parts, self._buffers, variant.gpus)
        all_reduce = self._all_reduce(variant.gpus)
        kind = Reduce if plan.how == ALL_REDUCE else BesideReduce
        return kind(bound, parts, self._buffers, variant.gpus, all_reduce)

    def _all_reduce(self, gpus: int) -> AllReduce:
        terms = [self._pool(gpu) for gpu in range(gpus)]
        return AllReduce(terms, [self._output(gpu, "sums") for gpu in range(gpus)], self._buffers)

    def _parts(self, plan: Plan, gpus: int) -> list[Part]:
        rows = self._shape[0]
        movers = [] if plan.how == ALL_REDUCE else plan.movers(gpus)
        ends = [rows * (i + 1) // len(movers) for i in range(len(movers))]
        places = {"first": 0, "peer": 1, "host": HOST}
        parts = [
            Part(
                gpu,
                self._pool(places.get(plan.rows_in, gpu)),
                self._output(places.get(plan.written_to, gpu)),
                self._launches[plan.how],
                begin,
                end,
            )
            for gpu, begin, end in zip(movers, [0, *ends], ends, strict=False)
        ]
        if plan.beside in BESIDE:
            place, how = BESIDE[plan.beside]
            pool, launches = self._pool(place), self._launches[how]
            parts.append(Part(1, pool, self._output(1), launches, 0, rows, is_neighbour=True))
        return parts

    def _pool(self, place: int) -> Pool:
        if place == HOST:
            return self._pools.of_host(self._size)
        return self._pools.of_gpu(place, self._size)

    def _output(self, place: int, what: str = "rows") -> Output:
        if (what, place) not in self._outputs:
            self._outputs[what, place] = Output(place, *self._shape, self._buffers)
        return self._outputs[what, place]

    def _in_module(self, module: Any, part: Part) -> Any:
        """The part as an argument of bindings.cpp."""
        sources = part.launches.sources
        return module.Part(
            gpu=part.gpu,
            pool=part.pool.pointer,
            pool_rows=self._pool_rows,
            dst=part.output.pointer,
            pairs=part.launches.pairs(part.gpu),
            begin=part.begin,
            rows=part.end - part.begin,
            row_bytes=self._shape[1],
            is_neighbour=part.is_neighbour,
            sources=sources[:, part.begin].tolist(),
            set_rows=sources.shape[1],
        )


class Gather(Operation):
    """One variant bound to one case. The check's launch moves the first set and later launches the
    other sets, so that no timed row is in a cache because of the check."""

    def __init__(self, bound: Any, parts: list[Part], buffers: Buffers, gpus: int) -> None:
        self._bound, self._parts, self._buffers, self._gpus = bound, parts, buffers, gpus
        self.launcher = bound
        self.reset: Callable[[int], None] | None = None
        if any(part.is_neighbour for part in parts):
            self.reset = bound.rejoin

    def poison(self) -> None:
        synchronize(self._gpus)  # a neighbour may still write
        for output in {id(part.output): part.output for part in self._parts}.values():
            output.fill(POISON)
        self._bound.restart()

    def check(self) -> str | None:
        """None if all outputs hold their source rows and are otherwise unchanged, else the first
        difference."""
        synchronize(self._gpus)
        for output in {id(part.output): part.output for part in self._parts}.values():
            parts = [part for part in self._parts if part.output is output]
            if wrong := self._wrong(output.landed(), parts):
                return wrong
        return None

    def _wrong(self, landed: Bytes, parts: list[Part]) -> str | None:
        """The first difference in an output that these parts wrote, in their order."""
        end = 0
        for part in parts:
            if wrong := touched(landed, end, part.begin):
                return wrong
            expected = self._buffers.of("expected", (part.end - part.begin, landed.shape[1]))
            part.pool.gather(part.checked, expected)
            got, end = landed[part.begin : part.end], part.end
            if wrong := wrong_row(got, expected, part.begin):
                return f"GPU {part.gpu}: {wrong}"
        return touched(landed, end, len(landed))


class WithReduce(Gather):
    """A gather and an all-reduce, whose outputs are both checked."""

    def __init__(
        self,
        bound: Any,
        parts: list[Part],
        buffers: Buffers,
        gpus: int,
        all_reduce: AllReduce,
    ) -> None:
        super().__init__(bound, parts, buffers, gpus)
        self._all_reduce = all_reduce

    def poison(self) -> None:
        super().poison()
        self._all_reduce.poison()

    def check(self) -> str | None:
        return super().check() or self._all_reduce.check()


class Reduce(WithReduce):
    """An all-reduce, with or without a neighbour's gather beside it."""

    # NCCL does not document that its calls never wait for the GPU.
    waits = True

    def __init__(self, bound: Any, *of: Any) -> None:
        super().__init__(bound, *of)
        all_reduce = self._all_reduce

        def launch(stream: int) -> None:
            bound.launch(stream)
            all_reduce.launch(stream)

        self.launcher = PythonLauncher(launch)


class BesideReduce(WithReduce):
    """A gather beside repeated all-reduces, which begin before its launch."""

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self.reset = self._all_reduce.start_again

    def poison(self) -> None:
        super().poison()
        self._all_reduce.start()
