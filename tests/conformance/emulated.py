"""Kernels of studies in Python: what a compiled variant would do with its arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from analysis.measure.cell import Operation
from analysis.study import Case, Variant
from analysis.toolchain.modules import load_python
from kernels.common.arrays import bytes_at
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


def case_of(variant: Variant, **small: int) -> Case:
    """A case of the variant with these numbers, in which a row or piece is as it is there."""
    case = variant.cases[0]
    values = {**case.values, **{key: small[key] for key in small.keys() & case.values.keys()}}
    return Case(values, case.payload_bytes, "default")


def sized(case: Case, *factors: str) -> Case:
    """The case with the payload that its values have."""
    size = int(np.prod([case.number(factor) for factor in factors]))
    return Case(case.values, size, case.grid)


def pieces(variant: Variant) -> Case:
    """Pieces to the host, whose places have gaps, if the variant moves any to memory of CUDA's."""
    is_held = variant.name.startswith(("pinned", "write_combined"))
    back = [case for case in variant.cases if is_held and case.values.get("direction") == "d2h"]
    case = case_of(replace(variant, cases=(*back, *variant.cases)), size=528, count=7)
    return sized(case, "size", "count")


def pool_rows(variant: Variant) -> Case:
    case = case_of(variant, rows=300, pool_mib=1)
    return Case(case.values, 300 * variant.constants["token_bytes"], "default")


def read_lines(variant: Variant) -> Case:
    case = case_of(variant, count=16, reads=96, rows=40, pool_mib=1)
    per_operation = "reads" if "reads" in case.values else "rows"
    real = variant.cases[0]
    each = real.payload_bytes // real.number(per_operation)
    return Case(case.values, each * case.number(per_operation), "default")


SMALL: dict[str, tuple[dict[str, int], Callable[[Variant], Case], Callable[[Variant], Any]]] = {
    "duplex": ({}, pieces, lambda variant: moves()),
    "h2d_gather": (
        {"total_cpu_slots": 64, "total_gpu_slots": 64},
        lambda variant: case_of(variant, bs=3, topk=7),
        lambda variant: rows_by_pairs(),
    ),
    "idle_stream": ({}, pieces, lambda variant: moves()),
    "link_calibration": (
        {"pool_bytes": 2**16, "largest_bytes": 2**14},
        lambda variant: (
            sized(case_of(variant, bytes=4096), "bytes")
            if "bytes" in variant.cases[0].values
            else Case(variant.cases[0].values, 8 * variant.cases[0].number("row_bytes"), "default")
        ),
        lambda variant: rows_in_order(),
    ),
    "peers": (
        {"largest_mib": 1},
        lambda variant: sized(case_of(variant, rows=40, pool_mib=1), "rows", "row_bytes"),
        lambda variant: Mover(variant.path),
    ),
    "pool_gather": (
        {"largest_pool_mib": 2},
        pool_rows,
        lambda variant: gathers(),
    ),
    "storage_fill": ({}, lambda variant: case_of(variant, side=9), lambda variant: fills()),
    "transfers": ({}, pieces, lambda variant: moves()),
    "translation": (
        {"pool_mib": 64, "kinds_mib": 64, "largest_bytes": 2**21},
        read_lines,
        lambda variant: Reader("lines" if "lines" in variant.name else "rows"),
    ),
    "unpack": (
        {"block_descriptors": 8},
        lambda variant: case_of(variant, chunks=2, kib=2, fragment=96),
        lambda variant: HostModule(room=8),
    ),
}
"""Constants, a small case and the module of each study whose kernels are here."""

BEYOND = {"price", "pressure", "step", "trip", "torch", "managed", "nvbandwidth", "profiled"}
"""Words in names of variants of transfers that do other things than move pieces."""


def emulated() -> list[tuple[str, Variant]]:
    """The studies and variants that this file can do the work of."""
    return [
        (name, variant)
        for name in SMALL
        for variant in STUDIES[name].subjects
        if not (name == "transfers" and BEYOND & {*variant.name.split("_")})
    ]


def bound(study: str, variant: Variant) -> Operation:
    """A variant bound to a small case."""
    constants, case, module = SMALL[study]
    workload = load_python(STUDIES[study], variant.workload).Workload(
        {**variant.constants, **constants}, np.random.default_rng(0)
    )
    inputs = workload.prepare(case(variant)) or workload
    operation: Operation = inputs.bind(variant, module(variant))
    operation.inputs = inputs  # type: ignore[attr-defined]  # whose memory is read by address
    return operation
