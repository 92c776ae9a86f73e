"""The first steps of every program with a variant: bind, launch, check.

Measuring, profiling and manual trials share this one order, so that none of them can get it wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from analysis.measure.cell import Operation
from analysis.study import Case, Study, Variant
from analysis.toolchain.modules import load_module, load_python

WorkloadKey = tuple[str, tuple[tuple[str, int], ...]]
"""The file of a workload and the constants it is made with."""
NO_FLUSH: Final = (0, 0)
"""Address and size of no memory, in the place of that whose memset flushes the L2."""


class Rig:
    """The inputs of a study in this process, and its variants bound to them."""

    def __init__(
        self,
        study: Study,
        modules: Path,
        rng: np.random.Generator,
        variants: Sequence[Variant] = (),
    ) -> None:
        """`modules` is the folder of built modules; inputs are drawn from `rng`. `variants` are
        those that are going to be bound. To be made before this process uses CUDA."""
        self._study, self._modules = study, modules
        self._rng, self._variants = rng, variants
        files = {"workload"} | {variant.workload for variant in study.variants}
        self._types = {file: load_python(study, file).Workload for file in sorted(files)}
        for made in self._types.values():
            getattr(made, "before_cuda", lambda: None)()
        self._workloads: dict[WorkloadKey, Any] = {}
        self._prepared: dict[WorkloadKey, tuple[str, Any]] = {}
        self._loaded: dict[str, ModuleType] = {}

    def bind(self, variant: Variant, case: Case, stream: int = 0) -> Bound:
        """Bind the variant to this case's inputs, for launches on `stream`; one without a GPU gets
        stream 0. Only the last result may be used. Skip if this machine cannot run the case."""
        if "torch" in sys.modules:
            from analysis.measure.memory import use  # imports CUDA

            use(0)  # the last stream is gone; inputs may use PyTorch
        inputs = self._prepare(variant, case)
        operation = inputs.bind(variant, self._module(variant))
        kept = inputs, self._workloads
        return Bound(variant, operation, stream if variant.on_gpu else 0, kept)

    def _prepare(self, variant: Variant, case: Case) -> Any:
        """The inputs of `case`, drawn again if the previous ones were for another case."""
        key = variant.workload, tuple(sorted(variant.constants.items()))
        if key not in self._workloads:
            self._workloads[key] = self._types[variant.workload](variant.constants, self._rng)
        prepared_for, inputs = self._prepared.pop(key, ("", None))
        if inputs is None or prepared_for != case.id:
            workload = self._workloads[key]
            made = workload.prepare(case)
            inputs = workload if made is None else made
            if before_bind := getattr(inputs, "before_bind", None):
                of_case = [
                    (each, self._module(each))
                    for each in self._variants
                    if (each.workload, each.constants) == (variant.workload, variant.constants)
                    and case in each.cases
                ]
                before_bind(of_case)
        self._prepared[key] = case.id, inputs
        return inputs

    def _module(self, variant: Variant) -> ModuleType:
        if variant.name not in self._loaded:
            self._loaded[variant.name] = load_module(self._modules, self._study, variant)
        return self._loaded[variant.name]


@dataclass(frozen=True)
class Bound:
    """A variant bound to a case. `inputs` keeps alive what the operation works on: it may hold no
    more than addresses."""

    variant: Variant
    operation: Operation
    stream: int
    inputs: object = None

    def launch(self) -> None:
        """Do the work once, and wait until it is done."""
        self.operation.launch(self.stream)
        self.wait()

    def wait(self) -> None:
        """Wait for everything launched, if it is on a GPU."""
        if self.variant.on_gpu:
            from analysis.measure.memory import synchronize  # imports CUDA

            synchronize(self.stream)

    def poison_and_launch(self) -> float:
        """Overwrite the output, then do the work once; returns the time of the work in seconds."""
        self.operation.poison()
        started = time.perf_counter()
        self.launch()
        return time.perf_counter() - started

    def check(self) -> str:
        """The first fault of the output; empty if every byte is correct. Then also flush what the
        check has left in the CPU's caches."""
        wrong = self.operation.check() or ""
        if not wrong and self.operation.settle:
            self.operation.settle()
        return wrong

    def warm_up(self) -> None:
        """Do the work once as a sample would, without timing it."""
        if self.operation.reset:
            self.operation.reset(self.stream)
        self.launch()

    def host_times(self, count: int, *, warm: bool = False) -> Iterator[dict[str, float]]:
        """Yield `count` times in seconds of the monotonic clock: host_time from the call until its
        result has arrived, submit_time until the call returns.

        Before each call, outside of its time: the reset, then a flush of the L2, as before device
        times, unless the case is `warm`; data that the CPU itself reads is flushed from its caches.
        """
        launcher, reset = self.operation.launcher, self.operation.reset
        settle = self.operation.settle if self.variant.host_work else None
        l2 = NO_FLUSH
        if self.variant.on_gpu:
            from analysis.measure import memory  # imports CUDA

            l2 = NO_FLUSH if warm else memory.l2_span()
        for _ in range(count):
            if reset:
                reset(self.stream)
                self.wait()
            if settle:
                if self.variant.on_gpu:  # first, so that no submission follows the settling
                    memory.flush_l2(self.stream, *l2)
                settle()
            flush = NO_FLUSH if settle else l2
            submit_time, host_time = launcher.time_launch(self.stream, *flush)
            yield {"host_time": host_time, "submit_time": submit_time}
