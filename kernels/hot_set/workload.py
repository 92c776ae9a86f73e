"""The pool, the hot sets and the steps of a case, and the check of all state after a step."""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.api.measure import Operation, PythonLauncher, flush_rows
from analysis.api.memory import DeviceArray, synchronize
from analysis.api.study import Case, FieldError, Variant
from kernels.common.arrays import Bytes
from kernels.common.neighbours import Neighbour, neighbour
from kernels.common.outputs import POISON
from kernels.common.shared_pool import MIB, Shared, cores_for, pool_bytes

from .comparison import Contents, Source, difference
from .policies import Clock
from .reference import HotSet, Step
from .traces import Shape, Trace, draw_places, draw_trace

CHOSEN = -1
"""Share of misses in place that the variant chooses."""

STEPS = 32
"""Steps of a trace after its warm-up. Longer series of launches begin again, with more misses."""

SHIFT_ROWS = 4096 + 64
"""Rows by which a context moves in its places from variant to variant, so that none finds the
translations of another. A multiple of the pages of all layouts."""

REFERENCES: Mapping[str, type[HotSet | Clock]] = {"lru": HotSet, "clock": Clock}
"""By the policy of a variant. All but one have exact LRU."""

SMALL_POOL = 1024 * MIB

FLUSHED_STEPS = 8
"""Coming steps whose new rows are flushed from the CPU's caches after a check: more than the engine
launches until the next one."""

_SHARED = Shared()
atexit.register(_SHARED.close)  # later, the modules that free memory may be unloaded


class Workload:
    """Rows of token_bytes in a pool of host memory."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._row_bytes = constants["token_bytes"]
        if self._row_bytes % 16:
            raise FieldError("constants.token_bytes", "a multiple of 16", self._row_bytes)
        self._context_rows = constants["context_rows"]
        self._largest = constants["largest_pool_mib"] * MIB
        self._rng = rng

    def prepare(self, case: Case) -> Inputs:
        """Skip if the host has no room for the pool, or if the neighbour's package is missing."""
        size = pool_bytes(case, self._largest)
        # The largest pool takes seconds, so it is made only if a case needs it.
        largest = SMALL_POOL if size <= SMALL_POOL else self._largest
        table = _SHARED.pool(size, min(largest, self._largest), self._rng)
        pool = table[: size // self._row_bytes * self._row_bytes].reshape(-1, self._row_bytes)
        shape = Shape(
            requests=case.number("requests"),
            topk=case.number("topk"),
            slots=case.number("slots"),
            context_rows=min(self._context_rows, len(pool)),
            steps=STEPS,
        )
        layers = case.number("layers") if "layers" in case.values else 1
        beside = neighbour(str(case["beside"])) if "beside" in case.values else None
        layout = str(case["layout"])
        if layout == "repeated":
            trace, places = _repeated(shape, case.number("misses"), layers, self._rng)
        else:
            trace = draw_trace(f"misses_{case.number('misses')}", shape, self._rng)
            places = draw_places(
                layers * shape.requests, shape.context_rows, len(pool), layout, self._rng
            )
        places = places.reshape(layers, shape.requests, shape.context_rows)
        share = case.number("share_32nds") if "share_32nds" in case.values else CHOSEN
        return Inputs(shape, trace, places, pool, beside, share)


def _repeated(
    shape: Shape, misses: int, layers: int, rng: np.random.Generator
) -> tuple[Trace, np.ndarray]:
    """As in the published benchmark, the missing rows of every step are the same consecutive pool
    rows. Rows that become new in one step are consecutive in the trace, so places repeat."""
    trace = draw_trace(f"misses_{misses}_consecutive", shape, rng)
    places = np.arange(shape.context_rows, dtype=np.int32) % max(1, misses // shape.requests)
    return trace, np.tile(places, (layers * shape.requests, 1))


@dataclass(frozen=True)
class Expected:
    """State of every request's reference, of this policy, after the trace steps `played`, and their
    last steps."""

    policy: str
    played: tuple[int, ...]
    sets: Sequence[HotSet | Clock]
    steps: list[Step]


class Inputs:
    """The inputs of one case. Every variant starts with free slots and takes the same steps."""

    def __init__(
        self,
        shape: Shape,
        trace: Trace,
        places: np.ndarray,
        pool: Bytes,
        beside: Neighbour | None,
        share_32nds: int = CHOSEN,
    ) -> None:
        """places: int32 [layers, requests, context_rows]; pool: uint8 [pool_rows, row_bytes]"""
        layers = len(places)
        self.shape = shape
        self.trace = trace
        self.places = places
        self.pool = pool
        self.beside = beside
        self.share_32nds = share_32nds
        self.ids_on_device = DeviceArray(trace.ids.shape, np.int32, "ids")
        self.ids_on_device.put(trace.ids)
        self.places_on_device = DeviceArray(places.shape, np.int32, "places")
        slots = layers, shape.requests, shape.slots
        self.out = DeviceArray((layers, shape.requests, shape.topk), np.int32, "out")
        self.hot = DeviceArray((*slots, pool.shape[1]), np.uint8, "hot")
        self.rows = DeviceArray(slots, np.int32, "rows")
        self.last_used = DeviceArray(slots, np.int32, "last_used")
        self._latest: Expected | None = None

    def bind(self, variant: Variant, module: Any) -> Operation:
        """Bind with free slots, then do the steps of the warm-up.

        Skip if the CPU takes part and has a single core."""
        cpus = cores_for(variant)
        _SHARED.use(None)  # frees its scratch memory before more is allocated
        self.places = np.roll(self.places, SHIFT_ROWS, axis=2)
        self.places_on_device.put(self.places)
        self.hot.fill(POISON)
        self.rows.fill(0xFF)
        self.last_used.fill(0xFF)
        bound = module.bind(
            pool=self.pool,
            places=self.places_on_device,
            ids=self.ids_on_device,
            out=self.out,
            hot=self.hot,
            rows=self.rows,
            last_used=self.last_used,
            cpus=cpus,
            share_32nds=self.share_32nds,
        )
        operation = HotSetSteps(_SHARED.use(bound), self, variant)
        for _ in range(self.trace.warmup_steps):
            operation.advance(0)
            bound.launch(0)
            synchronize(0)
        return operation

    def expected(self, policy: str, played: tuple[int, ...]) -> Expected:
        """The references after these trace steps. The latest one is kept: the next variant needs
        the same, or a check the steps after it."""
        latest = self._latest
        is_behind = latest is not None and played[: len(latest.played)] == latest.played
        if latest is None or latest.policy != policy or not is_behind:
            shape, kind = self.shape, REFERENCES[policy]
            sets = [kind(shape.slots, shape.context_rows) for _ in range(shape.requests)]
            latest = Expected(policy, (), sets, [])
        for index in played[len(latest.played) :]:
            ids = self.trace.ids[index]
            steps = [each.step(of) for each, of in zip(latest.sets, ids, strict=True)]
            latest = Expected(policy, (*latest.played, index), latest.sets, steps)
        self._latest = latest
        return latest


class HotSetSteps(Operation):
    """One variant bound to one case; `reset` moves on to the next step."""

    def __init__(self, bound: Any, inputs: Inputs, variant: Variant) -> None:
        self._bound = bound
        self.launcher = bound if variant.is_compiled else PythonLauncher(bound.launch)
        self._inputs = inputs
        self._policy = variant.options.get("policy", "lru")
        self._flushed_steps = 1 if variant.host_work else FLUSHED_STEPS
        self._played: list[int] = []
        self.reset = self.advance

    def advance(self, stream: int) -> None:
        """Enqueue copies that make the next step of the trace current."""
        index = self._index(len(self._played))
        self._bound.advance(stream, index, len(self._played))
        self._played.append(index)

    def _index(self, number: int) -> int:
        """Trace step of the step with this number since the start."""
        warmup, steps = self._inputs.trace.warmup_steps, self._inputs.shape.steps
        return number if number < warmup else warmup + (number - warmup) % steps

    def poison(self) -> None:
        self._inputs.out.fill(POISON)
        self.advance(0)
        synchronize(0)

    def check(self) -> str | None:
        """None if the state, the slots and all bytes of every request and layer are those of the
        reference, else the first difference."""
        inputs = self._inputs
        self._bound.publish()
        expected = inputs.expected(self._policy, tuple(self._played))
        ids = inputs.trace.ids[self._played[-1]]
        out, rows, last_used = (each.get() for each in (inputs.out, inputs.rows, inputs.last_used))
        landing = _SHARED.landing(rows.size, inputs.pool.shape[1])
        hot = inputs.hot.get(landing).reshape(inputs.hot.shape)

        def compare(at: tuple[int, int]) -> str | None:
            request = at[1]
            found = difference(
                expected.sets[request],
                expected.steps[request],
                ids[request],
                Contents(out[at], rows[at], last_used=last_used[at], buffer=hot[at]),
                Source(inputs.places[at], inputs.pool, POISON),
            )
            return found and f"layer {at[0]}, request {request}, {found}"

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            found = threads.map(compare, np.ndindex(rows.shape[:2]))
        return next(filter(None, found), None)

    def settle(self) -> None:
        """Flush the new rows of the coming steps from the CPU's caches. Threads that pack flush
        them themselves, so that they are awake as in back-to-back launches."""
        new = self._new_rows()
        if not self._bound.flush(new):
            flush_rows(self._inputs.pool, new)

    def _new_rows(self) -> np.ndarray:
        """Pool rows int64 of ids that a coming step has and its previous step has not."""
        inputs = self._inputs
        found = []
        for number in range(len(self._played), len(self._played) + self._flushed_steps):
            before, ids = (inputs.trace.ids[self._index(each)] for each in (number - 1, number))
            requests, places = np.nonzero(before != ids)
            found.append(inputs.places[:, requests, ids[requests, places]].ravel())
        return np.concatenate(found).astype(np.int64)

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """neighbour_slowdown: ratio of the neighbour's time beside the steps to its time alone."""
        beside = self._inputs.beside
        if beside is None:
            return {}

        def step(on: int) -> None:
            self.advance(on)
            self.launch(on)

        return {"neighbour_slowdown": [beside.slowdown(step, stream) for _ in range(count)]}
