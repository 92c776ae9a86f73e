"""Kernels on the CPU, block by block: hot sets against the references, and sharing with the CPU."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernels.hot_set.comparison import Contents, Source, difference
from kernels.hot_set.policies import Clock
from kernels.hot_set.reference import HotSet
from kernels.hot_set.traces import Shape, draw_trace
from tests.compiled import program, toolchain
from tests.kernels.stubbed import runtime
from tests.repository import STUDIES

HERE = Path(__file__).parent
FOLDER = STUDIES["hot_set"].folder
SHAPE = Shape(requests=2, topk=192, slots=256, context_rows=2048, steps=6)
ROW_BYTES = 48
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


def on_cpu(source: str, row_bytes: int, *defined: str) -> Path:
    """A program with kernels of the study, compiled for the CPU."""
    cuda = toolchain().include
    quiet = [f"-Wno-{what}" for what in ("unknown-pragmas", "attributes", "unused-parameter")]
    include = [f"-I{HERE}", f"-isystem{cuda}", f"-isystem{cuda / 'cccl'}"]
    flags = ["-std=c++17", "-pthread", "-O1", *include, *quiet, f"-DTOKEN_BYTES={row_bytes}"]
    sources = [HERE / source, runtime()]
    return program(f"on-cpu-{source}", sources, FOLDER, [*flags, *defined])


def ran(*command: object) -> None:
    words = [*map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_cpu_and_a_kernel_share_the_misses() -> None:
    ran(on_cpu("fetching.cpp", 656))


def source(request: int) -> Source:
    """The pool of resolving.cpp."""
    rows = np.arange(7 * SHAPE.context_rows + SHAPE.requests, dtype=np.int32)
    pool = np.repeat(rows.astype(np.uint8)[:, None], ROW_BYTES, axis=1)
    pool[:, :4] = rows[:, None].view(np.uint8)
    return Source(7 * np.arange(SHAPE.context_rows) + request, pool, 0xA5)


@pytest.mark.parametrize(("variant", "name"), CASES)
def test_state_slots_and_bytes_agree_with_the_reference(
    variant: str, name: str, tmp_path: Path
) -> None:
    shape = replace(SHAPE, steps=STEPS.get(name, SHAPE.steps))
    trace = draw_trace(name, shape, np.random.default_rng(1))
    numbers = [shape.requests, shape.topk, shape.slots, shape.context_rows, len(trace.ids)]
    (tmp_path / "trace").write_bytes(np.array(numbers, np.int32).tobytes() + trace.ids.tobytes())
    kernel = f"{variant}.cu"
    made = on_cpu("resolving.cpp", ROW_BYTES, f'-DVARIANT="{kernel}"')
    ran(made, tmp_path / "trace", tmp_path / "results")
    slots = (shape.requests, shape.slots)
    state: list[tuple[str, str, tuple[int, ...]]]
    state = [("out", "<i4", (shape.requests, shape.topk)), ("rows", "<i4", slots)]
    state += [("last_used", "<i4", slots), ("hot", "u1", (*slots, ROW_BYTES))]
    steps = np.fromfile(tmp_path / "results", np.dtype(state))
    kind = Clock if variant == "table_clock" else HotSet
    for request in range(shape.requests):
        reference = kind(shape.slots, shape.context_rows)
        for ids, got in zip(trace.ids[:, request], steps, strict=True):
            out, rows, last_used, hot = (got[field][request] for field in steps.dtype.names or ())
            found = Contents(out, rows, last_used, buffer=hot)
            step = reference.step(ids)
            assert difference(reference, step, ids, found, source(request)) is None
