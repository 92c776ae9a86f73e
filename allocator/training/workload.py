"""A training loop, inference, graphs and limits in a process with each variant's allocator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from analysis.api.measure import Operation, PythonOperation, Skip
from analysis.api.study import Case, FieldError, Variant

from .child import Message
from .children import ChildError, Children
from .torch_caching import SETTINGS as DEFAULT
from .works import WORKS

REFERENCE: Final = "torch_caching"
"""The variant whose values all others must reproduce."""

REFERENCE_ORDER: Final[Message] = {"settings": DEFAULT, "module": None}

LOOPS: Final[Mapping[str, int]] = {"training_small": 8, "training_large": 3, "decoding": 8}
"""Works whose speed is compared and whose allocator calls are counted: runs of each per round. Each
run is paired with one of the reference, in alternating order."""

PER_RUN: Final = ("host_time", "submit_time", "gpu_time", "driver_calls")

COUNTED_METRICS: Final = ("allocation_time", "allocation_share", "allocations")


class Workload:
    """The work of a case, and the processes that do it: one per variant, kept for the whole
    round."""

    _children: ClassVar[Children]

    @classmethod
    def before_cuda(cls) -> None:
        """Fork the server of the processes."""
        cls._children = Children()

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        del constants  # inputs are drawn by PyTorch with fixed seeds
        # CPUs differ in the load of their neighbours, so each turn uses another one.
        self._cpus = [int(cpu) for cpu in rng.permutation(sorted(os.sched_getaffinity(0)))]
        self._work = ""
        self._first: dict[str, list[float]] = {}
        self._wrong: dict[str, str] = {}

    def prepare(self, case: Case) -> None:
        self._work = str(case["work"])
        if self._work not in WORKS:
            raise FieldError(f"case {case.id}: work", f"one of {sorted(WORKS)}", self._work)
        self._first, self._wrong = {}, {}

    def before_bind(self, variants: Sequence[tuple[Variant, Any]]) -> None:
        """Start all processes; Skip where the GPU has too little memory for them."""
        self._begin({variant.name: allocator_order(module) for variant, module in variants})

    def bind(self, variant: Variant, module: Any) -> Operation:
        """Skip where the GPU has too little memory."""
        name, order = variant.name, allocator_order(module)
        self._begin({name: order})
        return RemoteWork(
            partial(self._ask, name, order),
            partial(self._ask, REFERENCE, REFERENCE_ORDER),
            self._first.get(REFERENCE, []),
            self._work,
            self._cpus,
            is_plugged=order["module"] is not None,
            fault=self._wrong.get(REFERENCE) or self._wrong.get(name) or self._differs(name),
        )

    def _begin(self, orders: Mapping[str, Message]) -> None:
        """Let all processes, the reference's included, create the work and run it once unless they
        have: at the same time, so that no process does so while another is timed."""
        orders = {REFERENCE: REFERENCE_ORDER, **orders}
        done = {*self._first, *self._wrong}
        orders = {name: order for name, order in orders.items() if name not in done}
        ready, wrong = self._children.ask_all(orders, drop=True)
        self._wrong |= wrong
        # The last process to report sees the memory that all others have freed.
        free = max((answer["free"] for answer in ready.values()), default=0)
        _, room = WORKS[self._work]
        if free < len(ready) * room:
            raise Skip(
                f"{self._work}: too little GPU memory is free: {free} B for {len(ready)} processes "
                f"that need {room} B each"
            )
        orders = {name: orders[name] for name in ready}
        begun, wrong = self._children.ask_all(orders, begin=self._work)
        self._wrong |= wrong
        self._first |= {name: answer["values"] for name, answer in begun.items()}

    def _ask(self, name: str, order: Message, cpu: int, *, counted: bool = False) -> Message:
        """Run the work once in a process; returns its answer. ChildError where the process has
        ended, now or earlier in this case."""
        if name in self._wrong:
            raise ChildError(self._wrong[name])
        try:
            return self._children.get(name, **order).ask(counted=counted, cpu=cpu)
        except ChildError as error:
            self._wrong[name] = str(error)
            raise

    def _differs(self, name: str) -> str | None:
        return difference(self._first[name], self._first[REFERENCE])


def allocator_order(module: Any) -> Message:
    """The message that selects the allocator of a variant in its process."""
    settings = getattr(module, "SETTINGS", None)
    path = str(Path(module.__file__).resolve()) if settings is None else None
    return {"settings": settings, "module": path}


def difference(values: Sequence[float], expected: Sequence[float]) -> str | None:
    """A description of the first value that differs; None where all are equal."""
    if len(values) != len(expected):
        return f"values: expected {len(expected)}, got {len(values)}"
    pairs = enumerate(zip(values, expected, strict=True), start=1)
    wrong = (
        f"value {n}: expected {right!r}, got {got!r}" for n, (got, right) in pairs if got != right
    )
    return next(wrong, None)


def fastest_steps(runs: Iterable[Message]) -> float:
    """Device time of a run in which each step takes its least time in any of `runs`: load of other
    processes only adds time, and disturbs some step of every run."""
    steps: Iterable[float] = map(min, zip(*(run["steps"] for run in runs), strict=True))
    return sum(steps)


class RemoteWork(PythonOperation):
    """A work that a variant's process runs at each launch.

    An error of the process is a fault of the cell, not of the round, unless samples are being
    taken. `fault` is an earlier error; after an error, nothing runs any more.
    """

    waits = True

    def __init__(
        self,
        ask: Callable[..., Message],
        ask_reference: Callable[..., Message],
        expected: Sequence[float],
        work: str,
        cpus: Sequence[int],
        *,
        is_plugged: bool,
        fault: str | None,
    ) -> None:
        self._ask = ask
        self._ask_reference = ask_reference
        self._expected = expected
        self._work = work
        self._cpus = cpus
        self._is_loop = work in LOOPS
        self._is_counted = is_plugged and self._is_loop
        self._ended = fault
        self._answer: Message = {}
        self._fault: str | None = "never done"

    def launch(self, stream: int) -> None:
        del stream
        if self._ended is None:
            try:
                self._answer = self._ask(self._cpus[0])
            except ChildError as error:
                self._ended = str(error)
        self._fault = self._ended

    def poison(self) -> None:
        self._fault = "never done"

    def check(self) -> str | None:
        return self._fault or difference(self._answer["values"], self._expected)

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """All metrics, in the units of study.yaml; per step, except for bytes and shares."""
        del stream, count
        samples: dict[str, list[float]] = {}
        if self._is_loop:
            # In turns, so that both have the same load on the host.
            turns = [self._turn(turn) for turn in range(LOOPS[self._work])]
            native, runs = zip(*turns, strict=True)
            samples["relative_speed"] = [fastest_steps(native) / fastest_steps(runs)]
        else:
            runs = (self._answer, self._run(self._ask))
        metrics = [run["metrics"] for run in runs]
        samples |= {name: [run[name] for run in metrics] for name in PER_RUN}
        samples |= {name: [metrics[-1][name]] for name in ("reserved", "active")}
        if self._is_counted:
            counted = self._run(partial(self._ask, counted=True))["metrics"]
            samples |= {name: [counted[name]] for name in COUNTED_METRICS}
        return samples

    def _turn(self, turn: int) -> tuple[Message, Message]:
        """A run with the reference and one with this allocator, on the same CPU."""
        asked = [self._ask_reference, self._ask]
        answers = [self._run(ask, turn) for ask in (asked if turn % 2 == 0 else asked[::-1])]
        native, variant = answers if turn % 2 == 0 else answers[::-1]
        return native, variant

    def _run(self, ask: Callable[..., Message], turn: int = 0) -> Message:
        """The answer of another run. RuntimeError where its values are wrong."""
        answer = ask(self._cpus[turn % len(self._cpus)])
        if wrong := difference(answer["values"], self._expected):
            raise RuntimeError(f"{self._work}: {wrong}")
        return answer
