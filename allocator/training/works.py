"""The workloads of a process: training, inference, graphs, running out of memory."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any, Final

import numpy as np

from .transformer import Cache, Shape, Transformer

GIB: Final = 2**30
ON_GPU: Final = "cuda"


@dataclass(frozen=True)
class Times:
    """Seconds from the first call until the last returns, until all work is complete, and between
    the device events before and after each step."""

    submit: float
    host: float
    steps: tuple[float, ...]

    @property
    def gpu(self) -> float:
        return sum(self.steps)


def combined(times: Sequence[Times]) -> Times:
    return Times(
        sum(one.submit for one in times),
        sum(one.host for one in times),
        tuple(step for one in times for step in one.steps),
    )


@dataclass(frozen=True)
class Run:
    """Result of a run: values that must not depend on the allocator, and times."""

    values: list[float]
    times: Times


Counting = AbstractContextManager[Any]
"""A context around the timed part; calls in graphs and limits are not counted."""

NOT_COUNTED: Final[Counting] = nullcontext()


class Work(ABC):
    """A workload that can be repeated, each time with the same result.

    `steps` is the number of timed steps of a run, `untimed` the number of steps before these.
    """

    steps: int
    untimed: int = 0

    @abstractmethod
    def run(self, counting: Counting) -> Run:
        """Run the workload once."""


def timed(steps: Iterable[object], counting: Counting, device: str = ON_GPU) -> Times:
    """Times of iterating over `steps`: each enqueues its work on the current stream, beginning with
    an idle GPU."""
    import torch

    if device != ON_GPU:
        ends = [time.perf_counter(), *(time.perf_counter() for _ in steps)]
        seconds = tuple(end - begin for begin, end in pairwise(ends))
        return Times(sum(seconds), sum(seconds), seconds)
    torch.cuda.synchronize()
    with counting:
        started = time.perf_counter()
        events = [recorded_event(), *(recorded_event() for _ in steps)]
        submitted = time.perf_counter()
        events[-1].synchronize()
        done = time.perf_counter()
    seconds = tuple(begin.elapsed_time(end) * 1e-3 for begin, end in pairwise(events))
    return Times(submitted - started, done - started, seconds)


def recorded_event() -> Any:
    import torch

    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


@dataclass(frozen=True)
class Plan:
    """A training run: `batch` sequences in each step, whose length is that step's in `lengths`."""

    shape: Shape
    batch: int
    lengths: Sequence[int]


class Training(Work):
    """Steps of AdamW under PyTorch's bfloat16 autocast. Values are the losses.

    Every run begins with the same weights.
    """

    def __init__(self, plan: Plan, device: str = ON_GPU) -> None:
        import torch

        self.steps, self.untimed = len(plan.lengths), 1
        self._device = device
        self._model = Transformer(plan.shape, device)
        self._weights = [weights.requires_grad_() for weights in self._model.parameters()]
        self._first = [weights.detach().clone() for weights in self._weights]
        self._optimiser = torch.optim.AdamW(self._weights, lr=1e-3)
        draws = torch.Generator(device).manual_seed(1)
        self._batches = [
            torch.randint(
                plan.shape.vocabulary, (plan.batch, length + 1), generator=draws, device=device
            )
            for length in plan.lengths
        ]

    def run(self, counting: Counting = NOT_COUNTED) -> Run:
        import torch

        self._step(self._batches[0])  # warms caches that another process has used
        self._begin()
        losses: list[Any] = []
        times = timed(self._trained(losses), counting, self._device)
        return Run(torch.stack(losses).tolist(), times)

    def _begin(self) -> None:
        import torch

        with torch.no_grad():
            for weights, first in zip(self._weights, self._first, strict=True):
                weights.copy_(first)
            for moments in self._optimiser.state.values():
                for moment in moments.values():
                    moment.zero_()

    def _trained(self, losses: list[Any]) -> Iterator[None]:
        """Append a loss to `losses` in each step."""
        for tokens in self._batches:
            losses.append(self._step(tokens))
            yield

    def _step(self, tokens: Any) -> Any:
        """The loss of a step, on the device."""
        import torch
        from torch.nn import functional

        with torch.autocast(self._device, torch.bfloat16):
            logits = self._model.logits(tokens[:, :-1])
            loss = functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        self._optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self._optimiser.step()
        return loss.detach()


class OutOfMemory(Training):
    """Training under limits, where one step runs out of memory, is skipped, and training goes on.
    Values are the losses under each limit, RAN_OUT for the skipped step."""

    RAN_OUT: Final = -1.0
    LIMITS: Final = (1 * GIB, 2 * GIB, 3 * GIB)

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.steps *= len(self.LIMITS)
        self.untimed *= len(self.LIMITS)

    def run(self, counting: Counting = NOT_COUNTED) -> Run:
        import torch

        total = torch.cuda.mem_get_info()[1]
        runs = []
        try:
            for limit in self.LIMITS:
                torch.cuda.empty_cache()
                torch.cuda.set_per_process_memory_fraction(limit / total)
                runs.append(super().run())
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
        values = [loss for run in runs for loss in run.values]
        if values.count(self.RAN_OUT) != len(self.LIMITS):
            raise RuntimeError(f"expected to run out once under each limit, got losses {values}")
        return Run(values, combined([run.times for run in runs]))

    def _step(self, tokens: Any) -> Any:
        import torch

        try:
            return super()._step(tokens)
        except torch.OutOfMemoryError:
            self._optimiser.zero_grad(set_to_none=True)
        return torch.tensor(self.RAN_OUT, device=self._device)


class Decoding(Work):
    """Greedy decoding after prompts, with a KV cache that grows by each token. Values are the
    tokens."""

    def __init__(
        self, shape: Shape, batch: int, prompts: Sequence[int], tokens: int, device: str = ON_GPU
    ) -> None:
        import torch

        self.steps, self.untimed = len(prompts) * tokens, 1
        self._device = device
        self._model = Transformer(shape, device, torch.bfloat16)
        draws = torch.Generator(device).manual_seed(1)
        self._prompts = [
            torch.randint(shape.vocabulary, (batch, length), generator=draws, device=device)
            for length in prompts
        ]
        self._tokens = tokens

    def run(self, counting: Counting = NOT_COUNTED) -> Run:
        import torch

        found: list[Any] = []
        with torch.inference_mode():
            self._model.logits(self._prompts[0])  # warms caches that another process has used
            times = timed(self._decoded(found), counting, self._device)
            return Run(torch.cat(found).flatten().tolist(), times)

    def _decoded(self, found: list[Any]) -> Iterator[None]:
        """Append a token to `found` in each step."""
        for prompt in self._prompts:
            cache, tokens = Cache(), prompt
            for _ in range(self._tokens):
                tokens = self._model.logits(tokens, cache)[:, -1:].argmax(-1)
                found.append(tokens)
                yield


@dataclass(frozen=True)
class Captured:
    """A graph that computes result = factor * read + 1, and its output tensors."""

    graph: Any
    factor: int
    result: Any
    total: Any

    def wrong(self, read: int) -> bool:
        """Whether an output tensor is wrong, where all elements of the input were `read`."""
        expected = self.factor * read + 1
        return bool((self.result != expected).any()) or int(self.total) != (
            expected * self.result.numel()
        )


class Graphs(Work):
    """Captured graphs, with separate memory pools and then with a shared one, and their replay,
    also after empty_cache. Graphs with separate pools are replayed in every order or in random
    ones; with a shared pool in the order of capture, as PyTorch requires, since a graph may reuse
    memory that an earlier one has freed.

    A step is a capture. There are no values: run raises RuntimeError if a result is wrong in any
    replay, or if a word beside the results has changed.
    """

    WORDS: Final = 2**19
    ORDERS: Final = 10
    MODES: Final = ("global", "thread_local", "relaxed")
    KEPT: Final = 7

    def __init__(self, graphs: int) -> None:
        import torch

        self.steps = 2 * graphs
        self._graphs = graphs
        self._read = torch.zeros(self.WORDS, dtype=torch.int64, device=ON_GPU)
        self._compute(1)  # loads the kernels, which may be impossible during a capture

    def _compute(self, factor: int) -> tuple[Any, Any]:
        product = self._read * factor
        result = product + 1
        del product
        return result, (result * 1).sum()

    def run(self, counting: Counting = NOT_COUNTED) -> Run:
        import torch

        any_order = orders(self._graphs, self.ORDERS)
        as_captured = [range(self._graphs)] * len(any_order)
        wrong, changed, times = 0, 0, []
        for pool, replayed in ((None, any_order), (torch.cuda.graph_pool_handle(), as_captured)):
            captured: list[Captured] = []
            kept: list[Any] = []
            times.append(timed(self._captures(pool, captured, kept), NOT_COUNTED))
            wrong += self._replay(captured, replayed)
            torch.cuda.empty_cache()
            kept.append(torch.full_like(self._read, self.KEPT))
            wrong += self._replay(captured, replayed)
            changed += sum(int((words != self.KEPT).sum()) for words in kept)
        if wrong or changed:
            raise RuntimeError(
                f"graphs: {wrong} results were wrong and {changed} words beside them had changed"
            )
        return Run([], combined(times))

    def _captures(self, pool: Any, captured: list[Captured], kept: list[Any]) -> Iterator[None]:
        """Capture a graph in each step. It frees temporaries, whose memory the next one may reuse;
        tensors outside of the graphs lie beside them."""
        import torch

        for number in range(self._graphs):
            graph, factor = torch.cuda.CUDAGraph(), number + 2
            mode = self.MODES[number % len(self.MODES)]
            with torch.cuda.graph(graph, pool=pool, capture_error_mode=mode):
                result, total = self._compute(factor)
            captured.append(Captured(graph, factor, result, total))
            kept.append(torch.full_like(self._read, self.KEPT))
            yield

    def _replay(self, captured: Sequence[Captured], replayed: Sequence[Sequence[int]]) -> int:
        """Number of wrong results after replaying all graphs in each of these orders."""
        wrong = 0
        for read, order in enumerate(replayed, start=1):
            self._read.fill_(read)
            for number in order:
                captured[number].graph.replay()
            wrong += sum(one.wrong(read) for one in captured)
            for one in captured:
                one.result.fill_(-1)
        return wrong


def orders(count: int, most: int) -> list[Sequence[int]]:
    """All orders of `count` graphs, or `most` random orders, with a fixed seed."""
    if count <= 3:
        return list(permutations(range(count)))
    draws = random.Random(1)
    return [draws.sample(range(count), count) for _ in range(most)]


def lengths(count: int, least: int, most: int, multiple: int) -> list[int]:
    """`count` sequence lengths from `least` to `most`, with a fixed seed."""
    draws = np.random.default_rng(2)
    return [multiple * int(n) for n in draws.integers(least // multiple, most // multiple, count)]


SMALL: Final = Shape(layers=4, width=256, heads=4, vocabulary=4096, longest=2048)
LARGE: Final = Shape(layers=6, width=1024, heads=8, vocabulary=16384, longest=512)
DECODER: Final = Shape(layers=8, width=512, heads=8, vocabulary=8192, longest=512)

WORKS: Final[Mapping[str, tuple[Callable[[], Work], int]]] = {
    "training_small": (lambda: Training(Plan(SMALL, 8, lengths(6, 32, 128, 1))), 2 * GIB),
    "training_large": (lambda: Training(Plan(LARGE, 24, lengths(5, 128, 512, 8))), 12 * GIB),
    "decoding": (lambda: Decoding(DECODER, 16, prompts=(96, 160), tokens=6), 2 * GIB),
    "graphs_2": (lambda: Graphs(2), 2 * GIB),
    "graphs_10": (lambda: Graphs(10), 2 * GIB),
    "out_of_memory": (lambda: OutOfMemory(Plan(SMALL, 8, (96, 64, 2047, 80, 128))), 4 * GIB),
}
"""The workload of each case, and the bytes of GPU memory that each process needs for it."""
