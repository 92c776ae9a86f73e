"""What a process does with its allocator: training, inference, graphs, running out of memory."""

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
    """Seconds from the first call until the last has returned, until all work is done, and between
    the device events before and after each step."""

    submit: float
    host: float
    steps: tuple[float, ...]

    @property
    def gpu(self) -> float:
        return sum(self.steps)


def together(times: Sequence[Times]) -> Times:
    return Times(
        sum(one.submit for one in times),
        sum(one.host for one in times),
        tuple(step for one in times for step in one.steps),
    )


@dataclass(frozen=True)
class Run:
    """What a run came to: numbers that have to be the same with every allocator, and times."""

    values: list[float]
    times: Times


Counting = AbstractContextManager[Any]
"""Entered while what is timed runs; graphs and limits are not counted."""

NOT_COUNTED: Final[Counting] = nullcontext()


class Work(ABC):
    """Something that can be done again and again, each time with the same result.

    `steps` is how many steps of a run are timed, `untimed` how many come before these.
    """

    steps: int
    untimed: int = 0

    @abstractmethod
    def run(self, counting: Counting) -> Run:
        """Do all of it once."""


def timed(steps: Iterable[object], counting: Counting, device: str = ON_GPU) -> Times:
    """Times of going through `steps`, each of which enqueues its work on the current stream of an
    idle GPU when it is asked for."""
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
    """A training: `batch` sequences in each step, as long as `lengths` says in turn."""

    shape: Shape
    batch: int
    lengths: Sequence[int]


class Training(Work):
    """Steps of AdamW, in bfloat16 where PyTorch's autocast has it. Values are the losses.

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

        self._step(self._batches[0])  # warms caches that another process used last
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
        """Add a loss to `losses` with each step."""
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
    """Steps under limits, of which one asks for more than there is: it is left out, and training
    goes on. Values are the losses under each limit, RAN_OUT where a step found no memory."""

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
        return Run(values, together([run.times for run in runs]))

    def _step(self, tokens: Any) -> Any:
        import torch

        try:
            return super()._step(tokens)
        except torch.OutOfMemoryError:
            self._optimiser.zero_grad(set_to_none=True)
        return torch.tensor(self.RAN_OUT, device=self._device)


class Decoding(Work):
    """Tokens that follow prompts, the likeliest each time, with a cache that grows by each. Values
    are the tokens."""

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
            self._model.logits(self._prompts[0])  # warms caches that another process used last
            times = timed(self._decoded(found), counting, self._device)
            return Run(torch.cat(found).flatten().tolist(), times)

    def _decoded(self, found: list[Any]) -> Iterator[None]:
        """Add a token to `found` with each step."""
        for prompt in self._prompts:
            cache, tokens = Cache(), prompt
            for _ in range(self._tokens):
                tokens = self._model.logits(tokens, cache)[:, -1:].argmax(-1)
                found.append(tokens)
                yield


@dataclass(frozen=True)
class Captured:
    """A graph that computes result = factor * read + 1, and the tensors that it leaves behind."""

    graph: Any
    factor: int
    result: Any
    total: Any

    def wrong(self, read: int) -> bool:
        """Whether a tensor is not what it has to be, where `read` was full of one number."""
        expected = self.factor * read + 1
        return bool((self.result != expected).any()) or int(self.total) != (
            expected * self.result.numel()
        )


class Graphs(Work):
    """So many graphs captured, with memory of their own and then all with the same, and replayed,
    also after empty_cache: the former in every order or in random ones, the latter in the order of
    capture, which PyTorch asks for where a graph may lie in what an earlier one has freed.

    A step is a capture. There are no values: run raises RuntimeError where a result is wrong in any
    replay, or a word beside the results has changed.
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
        self._compute(1)  # loads the kernels, which a capture may not be able to

    def _compute(self, factor: int) -> tuple[Any, Any]:
        product = self._read * factor
        result = product + 1
        del product
        return result, (result * 1).sum()

    def run(self, counting: Counting = NOT_COUNTED) -> Run:
        import torch

        own = orders(self._graphs, self.ORDERS)
        as_captured = [range(self._graphs)] * len(own)
        wrong, changed, times = 0, 0, []
        for pool, replayed in ((None, own), (torch.cuda.graph_pool_handle(), as_captured)):
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
        return Run([], together(times))

    def _captures(self, pool: Any, captured: list[Captured], kept: list[Any]) -> Iterator[None]:
        """Capture a graph with each step. It frees temporaries, which the next one may use; beside
        them lie tensors that no graph has to do with."""
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
        """How many results were wrong when all graphs were replayed in each of these orders."""
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
    """All orders of so many, or `most` random ones, the same each time."""
    if count <= 3:
        return list(permutations(range(count)))
    draws = random.Random(1)
    return [draws.sample(range(count), count) for _ in range(most)]


def lengths(count: int, least: int, most: int, multiple: int) -> list[int]:
    """So many lengths of sequences from `least` to `most`, the same each time."""
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
"""What is done in each case, and how many bytes of GPU memory have to be free for each process that
does it."""
