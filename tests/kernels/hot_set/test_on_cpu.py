"""Kernels on the CPU, block by block: hot sets against the references, and sharing with the CPU."""

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels.hot_set.comparison import Contents, Source, difference
from kernels.hot_set.policies import Clock
from kernels.hot_set.reference import FREE, HotSet
from kernels.hot_set.traces import Shape, draw_places, draw_trace
from tests.compiled import program, toolchain
from tests.kernels import stubbed
from tests.repository import STUDIES

HERE = Path(__file__).parent
FOLDER = STUDIES["hot_set"].folder
SHAPE = Shape(requests=2, topk=192, slots=256, context_rows=2048, steps=6)
ROW_BYTES, POISON = 48, 0xA5
STEPS = {"misses_20": 24}
"""With few misses, the hand of CLOCK goes round after more steps than the shape has."""
TRACES = ("kept_0.5", "misses_20", "all_new", "twice", "kept_0.9", "one_more")
CASES = [
    # The faults are in files of table_clock.
    pytest.param(name, trace, marks=[pytest.mark.long] if is_long else [])
    for name in ("table_lru", "table_clock", "table_spread")
    for trace in TRACES
    for is_long in [trace in TRACES[4:] or name != "table_clock"]
]


def on_cpu(variant: str) -> Any:
    """The library of a variant."""
    include = [*stubbed.on_cpu(), f"-I{HERE}", f"-isystem{toolchain().include / 'cccl'}"]
    flags = ["-std=c++17", "-pthread", "-O1", "-fPIC", "-shared", *include]
    defined = [f"-DTOKEN_BYTES={ROW_BYTES}", f'-DVARIANT="{variant}.cu"']
    sources = [HERE / "on_cpu.cpp", stubbed.runtime()]
    library = ctypes.CDLL(str(program("on_cpu.so", sources, FOLDER, [*flags, *defined])))
    for function, result in (("prepared", ctypes.c_void_p), ("rows_in_place", ctypes.c_int64)):
        getattr(library, function).restype = result
    return library


def test_the_cpu_and_a_kernel_share_the_misses() -> None:
    library = on_cpu("table_clock")

    def in_place(mib: int, rows: int, threads: int = 14, share_32nds: int = -1) -> int:
        of = map(ctypes.c_int64, (mib, threads, share_32nds, rows))
        return int(library.rows_in_place(*of))

    for mib in (1, 188, 512, 2048, 8192, 24576, 40960, 262144):
        for rows in (0, 1, 2, 100, 300, 1500, 8000, 41000, 204800):
            found = in_place(mib, rows)
            assert 0 <= found <= rows
            assert found == rows or (mib > 512 and rows > 2), "within the reach, none is packed"
            # Rounding may move a row.
            assert in_place(2 * mib, rows) - 1 <= found <= in_place(mib, rows, threads=2) + 1
            assert in_place(mib, rows, share_32nds=8) == rows // 4
    assert in_place(40960, 41000) < 41000 / 2
    assert library.meets()


POINTERS = ("pool", "pool_rows", "places", "ids", "step", "out", "hot", "rows", "last_used")
SIZES = ("requests", "topk", "slots", "context_rows", "share_32nds")


class Layer(ctypes.Structure):
    """HotSet of operator.h: addresses, of which `pool_rows` is a number, and sizes."""

    _fields_ = [
        (name, ctypes.c_size_t if name in POINTERS else ctypes.c_int) for name in POINTERS + SIZES
    ]


@pytest.mark.parametrize(("variant", "name"), CASES)
def test_state_slots_and_bytes_agree_with_the_reference(variant: str, name: str) -> None:
    library, shape = on_cpu(variant), replace(SHAPE, steps=STEPS.get(name, SHAPE.steps))
    rng = np.random.default_rng(1)
    trace, requests, slots = draw_trace(name, shape, rng), shape.requests, shape.slots
    pool = rng.integers(0, 256, (8 * shape.context_rows, ROW_BYTES), np.uint8)
    places = draw_places(requests, shape.context_rows, len(pool), "scattered", rng)
    ids, out = np.empty((2, requests, shape.topk), np.int32)
    rows, last_used = np.full((2, requests, slots), FREE, np.int32)
    hot, step = np.full((requests, slots, ROW_BYTES), POISON, np.uint8), np.zeros(1, np.int32)
    memory = (pool, places, ids, step, out, hot, rows, last_used)
    pointers = [array.ctypes.data for array in memory]
    layer = Layer(pointers[0], len(pool), *pointers[1:], requests, shape.topk, slots, 2048, -1)
    made = ctypes.c_void_p(library.prepared(ctypes.byref(layer)))
    kind = Clock if variant == "table_clock" else HotSet
    references = [kind(slots, shape.context_rows) for _ in range(requests)]
    for step[0], ids[:] in enumerate(trace.ids):
        for _ in range(1 + int(step[0]) % 2):  # a repeat changes nothing
            out.fill(-1)
            library.do_step(made)
        for at, reference in enumerate(references):
            found = Contents(out[at], rows[at], last_used[at], buffer=hot[at])
            expected, source = reference.step(ids[at]), Source(places[at], pool, POISON)
            assert difference(reference, expected, ids[at], found, source) is None
