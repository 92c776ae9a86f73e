"""Kernels of studies in Python: what a compiled variant would do with its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from analysis.measure.cell import Operation
from analysis.study import CaseValue, Variant
from kernels.common.arrays import bytes_at
from kernels.common.outputs import POISON
from kernels.hot_set.policies import Clock
from kernels.hot_set.reference import HotSet, buffer_of
from tests.conformance import binding
from tests.kernels.cuda import array_of
from tests.kernels.moves import python_module as moves
from tests.kernels.peers.fake import Mover
from tests.kernels.pool_gather.fake import python_module as gathers
from tests.kernels.translation.fake import Reader
from tests.kernels.unpack.fake import HostModule
from tests.repository import STUDIES


def rows_by_pairs() -> Any:
    """h2d_gather: row by row, from and to the places of pairs."""

    def bind(src: np.ndarray, dst: Any, pairs: Any, sm_launches: Any, **_: str) -> Any:
        def launch(stream: int) -> None:
            out = array_of(dst)
            sources, places = array_of(pairs).reshape(-1, 2).T
            out[places] = src[sources, : out.shape[1]]

        return SimpleNamespace(launch=launch)

    return SimpleNamespace(bind=bind)


class HotSets:
    """hot_set: the reference of every layer and request."""

    def __init__(self, policy: str, arrays: Mapping[str, Any]) -> None:
        self.pool = arrays["pool"]
        names = ("places", "ids", "out", "hot", "rows", "last_used")
        self.arrays = {name: array_of(arrays[name]) for name in names}
        kind = Clock if policy == "clock" else HotSet
        layers, requests, slots = self.arrays["rows"].shape
        context_rows = self.arrays["places"].shape[2]
        self.sets = {at: kind(slots, context_rows) for at in np.ndindex(layers, requests)}

    def advance(self, stream: int, index: int, number: int) -> None:
        self.ids = self.arrays["ids"][index]

    def launch(self, stream: int) -> None:
        of = self.arrays
        for at, hot_set in self.sets.items():
            of["out"][at] = hot_set.step(self.ids[at[1]]).slots
            of["rows"][at] = hot_set.rows
            of["last_used"][at] = getattr(hot_set, "last_used", 0)
            set: Any = hot_set
            of["hot"][at] = buffer_of(set, of["places"][at], self.pool, POISON)

    def publish(self) -> None:
        """All state is in the arrays."""

    close = publish


def hot_sets(variant: Variant) -> Any:
    policy = variant.options.get("policy", "lru")
    return SimpleNamespace(bind=lambda **arrays: HotSets(policy, arrays))


def rows_in_order() -> Any:
    """link_calibration: rows that begin at given vectors, or one block."""

    def bound(pool: int, dst: int, starts: int, rows: int, vectors: int, *_: int) -> Any:
        def launch(stream: int) -> None:
            places = bytes_at(starts, 4 * rows).view(np.int32) if starts else np.arange(rows)
            for i, start in enumerate(places.tolist()):
                size = 16 * vectors
                bytes_at(dst + i * size, size)[:] = bytes_at(pool + 16 * start, size)

        return SimpleNamespace(launch=launch)

    return SimpleNamespace(Bound=bound)


def fills() -> Any:
    """storage_fill: one value in all elements."""

    def bound(pointer: int, count: int, value: float) -> Any:
        def launch(stream: int) -> None:
            bytes_at(pointer, 4 * count).view(np.float32)[:] = value

        return SimpleNamespace(launch=launch)

    def bind(square: Any, value: float) -> Callable[[int], None]:
        interface = square.__cuda_array_interface__
        launch: Callable[[int], None] = bound(
            interface["data"][0], interface["shape"][0], value
        ).launch
        return launch

    return SimpleNamespace(Bound=bound, bind=bind)


PIECES = {"size": 528, "count": 7}
LINES = {"count": 16, "reads": 96, "rows": 40, "pool_mib": 1}
STEPS = {"requests": 2, "topk": 24, "slots": 40, "misses": 6, "pool_mib": 1, "layers": 2}

SMALL: dict[str, tuple[dict[str, int], dict[str, int], Callable[[Variant], Any]]] = {
    "duplex": ({}, PIECES, lambda variant: moves()),
    "h2d_gather": (
        {"total_cpu_slots": 64, "total_gpu_slots": 64},
        {"bs": 3, "topk": 7},
        lambda variant: rows_by_pairs(),
    ),
    "hot_set": ({"largest_pool_mib": 1}, STEPS, hot_sets),
    "idle_stream": ({}, PIECES, lambda variant: moves()),
    "link_calibration": (
        {"pool_bytes": 2**16, "largest_bytes": 2**14, "total_bytes": 256},
        {"bytes": 4096},
        lambda variant: rows_in_order(),
    ),
    "peers": ({"largest_mib": 1}, {"rows": 40, "pool_mib": 1}, lambda v: Mover(v.path)),
    "pool_gather": ({"largest_pool_mib": 2}, {"rows": 300, "pool_mib": 1}, lambda v: gathers()),
    "storage_fill": ({}, {"side": 9}, lambda variant: fills()),
    "transfers": ({}, PIECES, lambda variant: moves()),
    "translation": (
        {"pool_mib": 64, "kinds_mib": 64, "largest_bytes": 2**21},
        LINES,
        lambda variant: Reader("lines" if "lines" in variant.name else "rows"),
    ),
    "unpack": (
        {"block_descriptors": 8},
        {"chunks": 2, "kib": 2, "fragment": 96},
        lambda variant: HostModule(room=8),
    ),
}
"""Constants, values of a small case, and the module of each study whose kernels are here."""

BEYOND = {"price", "pressure", "step", "trip", "torch", "managed", "nvbandwidth", "profiled"}
"""Words in names of variants of transfers that do other things than move pieces."""


def emulated() -> list[tuple[str, Variant]]:
    """The studies and variants that this file can do the work of."""
    return [
        (name, variant)
        for name in SMALL
        for variant in STUDIES[name].subjects
        if not (name == "transfers" and BEYOND & {*variant.name.split("_")})
        and (variant.on_gpu or name != "hot_set")
    ]


def bound(study: str, variant: Variant) -> Operation:
    """A variant bound to a small case. Pieces in memory of CUDA's go to the host, if they may: only
    there, the spoiled output is seen."""
    constants, small, module = SMALL[study]
    known = variant.cases[0].values
    values: dict[str, CaseValue] = {key: small[key] for key in small.keys() & known.keys()}
    is_held = variant.name.startswith(("pinned", "write_combined"))
    if is_held and any(case.values.get("direction") == "d2h" for case in variant.cases):
        values["direction"] = "d2h"
    return binding.bound(STUDIES[study], variant, module(variant), values, **constants)
