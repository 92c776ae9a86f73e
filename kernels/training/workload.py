"""A training loop, inference, graphs and limits in a process with each variant's allocator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from analysis.api.measure import Operation, Skip
from analysis.api.study import Case, FieldError, Variant

from .child import Message
from .children import ChildError, Children
from .torch_caching import SETTINGS as DEFAULT
from .works import WORKS

REFERENCE: Final = "torch_caching"
"""Whose values those of all others have to be."""

REFERENCE_ORDER: Final[Message] = {"settings": DEFAULT, "module": None}

LOOPS: Final[Mapping[str, int]] = {"training_small": 8, "training_large": 3, "decoding": 8}
"""Works whose speed is compared, and of which it is counted what the allocator takes: how many runs
of each there are in a round, each beside one of the reference, in changing order."""

PER_RUN: Final = ("host_time", "submit_time", "gpu_time", "driver_calls")

COUNTED_METRICS: Final = ("allocation_time", "allocation_share", "allocations")


class Workload:
    """What is done in a case, and the processes that do it: one for each variant, kept for the
    whole round."""

    _children: ClassVar[Children]

    @classmethod
    def before_cuda(cls) -> None:
        """Fork what the processes are forked from."""
        cls._children = Children()

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        del constants  # what is computed is PyTorch's draw, with fixed seeds: the same in every run
        # CPUs differ by what their neighbours do, so each turn is on another.
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
        """Skip where the GPU has too little memory for all of them."""
        self._begin({variant.name: order_of(module) for variant, module in variants})

    def bind(self, variant: Variant, module: Any) -> Operation:
        """Skip where the GPU has too little memory."""
        name, order = variant.name, order_of(module)
        self._begin({name: order})
        return Asked(
            partial(self._ask, name, order),
            partial(self._ask, REFERENCE, REFERENCE_ORDER),
            self._first.get(REFERENCE, []),
            self._work,
            self._cpus,
            is_plugged=order["module"] is not None,
            fault=self._wrong.get(REFERENCE) or self._wrong.get(name) or self._differs(name),
        )

    def _begin(self, orders: Mapping[str, Message]) -> None:
        """Let the processes that have not done so make the work and do it once, the reference's
        among them: all at the same time, so that none of them does while one is timed."""
        orders = {REFERENCE: REFERENCE_ORDER, **orders}
        done = {*self._first, *self._wrong}
        orders = {name: order for name, order in orders.items() if name not in done}
        ready, wrong = self._children.ask_all(orders, drop=True)
        self._wrong |= wrong
        # Once all have used the GPU, the last one to look sees what all of them have freed.
        free = max((told["free"] for told in ready.values()), default=0)
        _, room = WORKS[self._work]
        if free < len(ready) * room:
            raise Skip(
                f"{self._work}: too little GPU memory is free: {free} B for {len(ready)} processes "
                f"that need {room} B each"
            )
        orders = {name: orders[name] for name in ready}
        begun, wrong = self._children.ask_all(orders, begin=self._work)
        self._wrong |= wrong
        self._first |= {name: told["values"] for name, told in begun.items()}

    def _ask(self, name: str, order: Message, cpu: int, *, counted: bool = False) -> Message:
        """What a process answers when it has done the work once. ChildError where it has ended, in
        this case for good."""
        if name in self._wrong:
            raise ChildError(self._wrong[name])
        try:
            return self._children.get(name, **order).ask(counted=counted, cpu=cpu)
        except ChildError as error:
            self._wrong[name] = str(error)
            raise

    def _differs(self, name: str) -> str | None:
        return difference(self._first[name], self._first[REFERENCE])


def order_of(module: Any) -> Message:
    """The allocator of a variant, as its process is told."""
    settings = getattr(module, "SETTINGS", None)
    path = str(Path(module.__file__).resolve()) if settings is None else None
    return {"settings": settings, "module": path}


def difference(values: Sequence[float], expected: Sequence[float]) -> str | None:
    """The first value that is not as expected; None where all are."""
    if len(values) != len(expected):
        return f"values: expected {len(expected)}, got {len(values)}"
    pairs = enumerate(zip(values, expected, strict=True), start=1)
    wrong = (
        f"value {n}: expected {right!r}, got {got!r}" for n, (got, right) in pairs if got != right
    )
    return next(wrong, None)


def least(runs: Iterable[Message]) -> float:
    """Device time of a run whose every step takes as long as in the fastest of `runs`: neighbours
    only ever add to it, and leave no whole run alone."""
    steps: Iterable[float] = map(min, zip(*(run["steps"] for run in runs), strict=True))
    return sum(steps)


class Asked(Operation):
    """A work done by a variant's process each time it is launched.

    An error of the process is a fault of the cell, not of the round, unless it comes while samples
    are taken. So is `fault`, what was wrong before; after either, nothing is done any more.
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
        self._told: Message = {}
        self._fault: str | None = "never done"

    def launch(self, stream: int) -> None:
        del stream
        if self._ended is None:
            try:
                self._told = self._ask(self._cpus[0])
            except ChildError as error:
                self._ended = str(error)
        self._fault = self._ended

    def poison(self) -> None:
        self._fault = "never done"

    def check(self) -> str | None:
        return self._fault or difference(self._told["values"], self._expected)

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """All metrics, in the units of study.yaml, per step but for bytes and shares."""
        del stream, count
        samples: dict[str, list[float]] = {}
        if self._is_loop:
            # In turns, so that both have the same neighbours on the host.
            turns = [self._turn(turn) for turn in range(LOOPS[self._work])]
            native, runs = zip(*turns, strict=True)
            samples["relative_speed"] = [least(native) / least(runs)]
        else:
            runs = (self._told, self._run(self._ask))
        metrics = [run["metrics"] for run in runs]
        samples |= {name: [run[name] for run in metrics] for name in PER_RUN}
        samples |= {name: [metrics[-1][name]] for name in ("reserved", "active")}
        if self._is_counted:
            counted = self._run(partial(self._ask, counted=True))["metrics"]
            samples |= {name: [counted[name]] for name in COUNTED_METRICS}
        return samples

    def _turn(self, turn: int) -> tuple[Message, Message]:
        """A run on the reference and one on this allocator, on the same CPU."""
        asked = [self._ask_reference, self._ask]
        told = [self._run(ask, turn) for ask in (asked if turn % 2 == 0 else asked[::-1])]
        native, own = told if turn % 2 == 0 else told[::-1]
        return native, own

    def _run(self, ask: Callable[..., Message], turn: int = 0) -> Message:
        """What comes of another run. RuntimeError where its values are wrong."""
        told = ask(self._cpus[turn % len(self._cpus)])
        if wrong := difference(told["values"], self._expected):
            raise RuntimeError(f"{self._work}: {wrong}")
        return told
