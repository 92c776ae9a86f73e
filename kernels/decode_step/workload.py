"""A decode step of all layers: fetch, attention, products; and the check of sampled layers."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import numpy as np
import torch

from analysis.api.measure import PythonOperation, Skip
from analysis.api.study import Case, Variant
from analysis.api.torch import use
from kernels.common.arrays import Bytes
from kernels.common.options import with_options
from kernels.common.outputs import POISON
from kernels.common.shared_pool import MIB, Shared, cores_for, pool_bytes

from . import attention
from .trace import WARMUP_STEPS, Shape, draw_ids, draw_places

SMALL_POOL: Final = 1024 * MIB
STEPS: Final = 24
"""Steps of a trace after its warm-up: more than a visit takes."""
WEIGHTS: Final = 16
"""Matrices that layers take in turn, two each. Together they are far larger than the L2."""
CHECKED: Final = (0, 0.5, 1)
"""Layers that are checked, as shares of the way through them."""
PARTS: Final = "fetch", "attention", "products"

_SHARED = Shared()
atexit.register(_SHARED.close)  # later, the modules that free memory may be unloaded
Part = Callable[[int], object]
"""Does the work of a layer by its number, or enqueues it."""
Events = dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]]


class Workload:
    """Rows in a pool of host memory, and weights on the GPU."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        self._constants = constants
        self._rng = rng
        self._made_rows = 0

    def prepare(self, case: Case) -> Inputs:
        """Skip if the host has no room for the pool, or if the attention cannot be loaded."""
        largest = self._constants["largest_pool_mib"] * MIB
        size = pool_bytes(case, largest)
        pool = _SHARED.pool(size, largest if size > SMALL_POOL else SMALL_POOL, self._rng)
        row_bytes = self._constants["token_bytes"]
        rows = pool[: size // row_bytes * row_bytes].reshape(-1, row_bytes)
        if len(rows) > self._made_rows:
            attention.make_rows(rows)
            self._made_rows = len(rows)
        generator = torch.Generator("cuda")
        generator.manual_seed(int(self._rng.integers(2**31)))
        try:
            return Inputs(case, self._constants, rows, generator)
        except torch.OutOfMemoryError as error:
            raise Skip(f"the GPU has too little memory: {_first_line(error)}") from error


class Inputs:
    """The inputs of one case. Every variant starts with free slots and takes the same steps."""

    def __init__(
        self,
        case: Case,
        constants: Mapping[str, int],
        pool: Bytes,
        generator: torch.Generator,
    ) -> None:
        """pool: uint8 [pool_rows, token_bytes], of rows that have finite values"""
        layers, topk = constants["layers"], constants["topk"]
        slots, requests = constants["slots"], case.number("requests")
        self.pool, self.schedule = pool, str(case["schedule"])
        self.misses = topk * (100 - case.number("hits")) // 100
        context_rows = min(constants["context_rows"], len(pool))
        sets = layers * requests
        shape = Shape(sets, topk, slots, context_rows, self.misses, STEPS)
        ids = draw_ids(shape, generator)
        int32 = {"dtype": torch.int32, "device": "cuda"}
        self.arrays = {
            "places": draw_places(sets, context_rows, len(pool), generator).view(
                layers, requests, context_rows
            ),
            "ids": ids.view(-1, layers, requests, topk),
            "out": torch.zeros(layers, requests, topk, **int32),
            "hot": torch.zeros(
                layers, requests, slots, pool.shape[1], dtype=torch.uint8, device="cuda"
            ),
            "rows": torch.zeros(layers, requests, slots, **int32),
            "last_used": torch.zeros(layers, requests, slots, **int32),
        }
        try:
            self.attention = attention.Attention(self.arrays["hot"], topk, generator)
        except (OSError, RuntimeError, AttributeError) as error:
            raise Skip(f"the attention does not run: {_first_line(error)}") from error
        width, bfloat16 = case.number("width"), {"dtype": torch.bfloat16, "device": "cuda"}
        self.weights = torch.randn(WEIGHTS, width, width, generator=generator, **bfloat16)
        self.weights *= width**-0.5
        self.tokens = torch.randn(requests, width, generator=generator, **bfloat16)
        self.products = [torch.empty_like(self.tokens) for _ in range(2)]

    def bind(self, variant: Variant, module: Any) -> DecodeStep:
        """Bind with free slots, then do the steps of the warm-up.

        Skip if the CPU takes part and has a single core."""
        cpus = cores_for(variant)
        _SHARED.use(None)  # frees its scratch memory before more is allocated
        arrays = self.arrays
        arrays["rows"].fill_(-1)
        arrays["last_used"].fill_(-1)
        fetches = variant.role != "ceiling"
        if fetches:
            arrays["hot"].fill_(POISON)
        else:  # rows are resident from the start
            arrays["hot"].copy_(torch.from_numpy(self.pool[: arrays["hot"].shape[2]]))
        options = {name: value for name, value in variant.options.items() if name != "parts"}
        if not variant.is_compiled and options:
            module = with_options(variant, module)
        layers = _SHARED.use(module.bind(pool=self.pool, cpus=cpus, **arrays))
        torch.cuda.synchronize()
        step = DecodeStep(layers, self, variant)
        if fetches:
            for _ in range(WARMUP_STEPS):
                step.reset(0)
                for layer in range(len(arrays["rows"])):
                    layers.launch_layer(0, layer)
                torch.cuda.synchronize()
        try:
            step.capture()
        except RuntimeError as error:
            raise Skip(f"cannot be captured: {_first_line(error)}") from error
        return step


def _without_stream(part: Part, layer: int, stream: int) -> None:
    """Enqueue a part on PyTorch's current stream, which is `stream`."""
    del stream
    part(layer)


def _first_line(error: Exception) -> str:
    return f"{error}".partition("\n")[0]


class DecodeStep(PythonOperation):
    """One variant bound to one case; `reset` moves on to the next step.

    All of a step is one CUDA graph, unless the CPU takes part in the fetch: then the host launches
    the fetches, and a graph each for the attention and the products of a layer.
    """

    def __init__(self, layers: Any, inputs: Inputs, variant: Variant) -> None:
        self._layers, self._inputs = layers, inputs
        self._is_compiled = variant.is_compiled
        self._fetches = variant.role != "ceiling"
        self._is_captured = not variant.host_work
        self._parts = variant.options.get("parts", "all")
        self._count = len(inputs.arrays["rows"])
        self._played = 0
        self._stream = torch.cuda.Stream()  # of captures
        self._side = torch.cuda.Stream()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._graphs: dict[str, list[torch.cuda.CUDAGraph]] = {}
        self._attended: torch.Tensor | None = None  # by the last layer
        self._before: dict[int, torch.Tensor] = {}

    def reset(self, stream: int) -> None:  # a method, since an attribute would make a cycle
        """Enqueue copies that make the next step of the trace current."""
        use(stream)
        self._layers.advance(stream, self._index(self._played), self._played)
        self._played += 1

    @staticmethod
    def _index(number: int) -> int:
        """Trace step of the step with this number since the start."""
        return number if number < WARMUP_STEPS else WARMUP_STEPS + (number - WARMUP_STEPS) % STEPS

    def capture(self) -> None:
        """Record what a launch replays. RuntimeError if the fetch cannot be captured."""
        use(self._stream.cuda_stream)
        self._attend(0)  # first calls set up what no capture may
        self._multiply(0)
        torch.cuda.synchronize()
        pool = torch.cuda.graph_pool_handle()
        if self._is_captured:
            self._graph = self._captured(pool, self._enqueue)
            return
        for name, part in (("attention", self._attend), ("products", self._multiply)):
            self._graphs[name] = [
                self._captured(pool, partial(_without_stream, part, layer))
                for layer in range(self._count)
            ]

    def _captured(self, pool: Any, enqueue: Callable[[int], object]) -> torch.cuda.CUDAGraph:
        # torch.cuda.graph would collect garbage each time.
        stream = self._stream.cuda_stream
        use(stream)
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        try:
            enqueue(stream)
        except RuntimeError:
            with suppress(RuntimeError):
                graph.capture_end()
            raise
        graph.capture_end()
        torch.cuda.synchronize()
        return graph

    def launch(self, stream: int) -> None:
        use(stream)
        if self._graph:
            self._graph.replay()
        else:
            self._enqueue(stream)

    def _enqueue(self, stream: int, events: Events | None = None) -> None:
        """The step on `stream`. `events` gets the begin and the end of each layer's parts."""
        attend, multiply = self._attend, self._multiply
        if self._graphs:
            attend = lambda layer: self._graphs["attention"][layer].replay()  # noqa: E731
            multiply = lambda layer: self._graphs["products"][layer].replay()  # noqa: E731
        schedule = self._inputs.schedule
        self._timed(events, "fetch", partial(self._fetch, stream), 0)
        for layer in range(self._count):
            following = layer + 1
            is_last = following == self._count
            if schedule == "beside_layer" and not is_last:
                self._fetch_ahead(stream, following, events)
            self._timed(events, "attention", attend, layer)
            if schedule == "beside_products" and not is_last:
                self._fetch_ahead(stream, following, events)
            self._timed(events, "products", multiply, layer)
            if is_last:
                return
            if schedule == "inline":
                self._timed(events, "fetch", partial(self._fetch, stream), following)
            else:
                torch.cuda.current_stream().wait_stream(self._side)

    def _fetch(self, stream: int, layer: int) -> None:
        self._layers.launch_layer(stream, layer)
        use(stream)

    def _fetch_ahead(self, stream: int, layer: int, events: Events | None) -> None:
        """Fetch on the second stream, beginning when the first one gets here."""
        self._side.wait_stream(torch.cuda.current_stream())
        side = self._side.cuda_stream
        use(side)
        self._timed(events, "fetch", partial(self._fetch, side), layer)
        use(stream)

    def _attend(self, layer: int) -> None:
        if self._parts != "products":
            self._attended = self._inputs.attention(layer, self._slots(layer))

    def _multiply(self, layer: int) -> None:
        if self._parts == "attention":
            return
        weights, (between, out) = self._inputs.weights, self._inputs.products
        at = 2 * layer % WEIGHTS
        torch.mm(self._inputs.tokens, weights[at], out=between)
        torch.mm(between, weights[at + 1], out=out)

    @staticmethod
    def _timed(events: Events | None, name: str, part: Part, layer: int) -> None:
        if events is None:
            part(layer)
            return
        begin, end = (torch.cuda.Event(enable_timing=True, external=True) for _ in range(2))
        begin.record()
        part(layer)
        end.record()
        events.setdefault(name, []).append((begin, end))

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        """fetch_time, attention_time, products_time: of all layers of a step, by events in it. Only
        where each part follows the one before it do they add up to the step."""
        if self._parts != "all":
            return {}
        found: dict[str, list[float]] = {}
        events: Events = {}
        graph, attended = None, self._attended
        if self._is_captured:
            pool = torch.cuda.graph_pool_handle()
            graph = self._captured(pool, partial(self._enqueue, events=events))
            self._attended = attended  # launches write there
        for _ in range(min(count, 3)):
            self.reset(stream)
            if graph:
                graph.replay()
            else:
                events = {}
                self._enqueue(stream, events)
            torch.cuda.synchronize()
            for name, pairs in events.items():
                seconds = sum(begin.elapsed_time(end) for begin, end in pairs) / 1e3
                if name != "fetch" or self._fetches:
                    found.setdefault(f"{name}_time", []).append(seconds)
        return found

    @property
    def _checked(self) -> list[int]:
        return sorted({round(share * (self._count - 1)) for share in CHECKED})

    def poison(self) -> None:
        for layer in self._checked if self._fetches else ():
            self._before[layer] = self._held(layer).clone()
            self._slots(layer).fill_(-1)
        self.reset(0)
        for out in (self._attended, *self._inputs.products):
            if out is not None:
                out.fill_(float("nan"))
        torch.cuda.synchronize()

    def _slots(self, layer: int) -> torch.Tensor:
        slots: torch.Tensor = (
            self._inputs.arrays["out"][layer] if self._is_compiled else self._layers.slots(layer)
        )
        return slots

    def _held(self, layer: int) -> torch.Tensor:
        rows: torch.Tensor = (
            self._inputs.arrays["rows"][layer] if self._is_compiled else self._layers.held(layer)
        )
        return rows

    def check(self) -> str | None:
        """None if sampled layers have every id's bytes in a slot of its own request, have fetched
        as many rows as were missing, and the last one's attention is right; else the first fault.
        """
        torch.cuda.synchronize()
        use(0)
        for layer in self._checked if self._fetches else ():
            if found := self._layer_fault(layer):
                return f"layer {layer}, {found}"
        if self._attended is None:
            products = self._inputs.products[1]
            return None if bool(products.isfinite().all()) else "products: expected finite values"
        inputs, last = self._inputs, self._count - 1
        hot = inputs.arrays["hot"][last].view(-1, inputs.pool.shape[1])
        rows = hot[self._slots(last)[0].long()]
        wanted = attention.expected(inputs.attention.queries[0], rows)
        return attention.difference(self._attended[0, 0], wanted)

    def _layer_fault(self, layer: int) -> str | None:
        inputs, arrays = self._inputs, self._inputs.arrays
        slots = self._slots(layer).long()
        requests, topk = slots.shape
        of_request = arrays["rows"].shape[2]
        owners = torch.arange(requests, device="cuda")[:, None]
        if not bool((slots // of_request == owners).all()):
            return "slots: expected those of the request, got another's"
        if slots.unique().numel() != slots.numel():
            return f"slots: expected {topk} different ones a request"
        index = self._index(self._played - 1)
        rows = arrays["places"][layer].gather(1, arrays["ids"][index, layer].long())
        wanted = torch.from_numpy(inputs.pool)[rows.flatten().cpu().long()].cuda()
        hot = arrays["hot"][layer].view(-1, inputs.pool.shape[1])
        wrong = (hot[slots.flatten()] != wanted).any(1)
        if bool(wrong.any()):
            at = int(wrong.nonzero()[0])
            return f"request {at // topk}, id {at % topk}: expected the bytes of its row"
        before, after = (
            held.long() + owners * (1 << 32) for held in (self._before[layer], self._held(layer))
        )
        fetched = int((~torch.isin(after, before)).sum())
        if fetched != requests * inputs.misses:
            return f"fetched rows: expected {requests * inputs.misses}, got {fetched}"
        return None
