"""Variants of one kernel on the CPU, block by block, against the references."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import ROOT
from kernels.hot_set.comparison import Contents, Source, difference
from kernels.hot_set.policies import Clock
from kernels.hot_set.reference import HotSet
from kernels.hot_set.traces import Shape, Trace, draw_trace
from tests.compiled import program, toolchain

HERE = Path(__file__).parent
HOT_SET = ROOT / "kernels" / "hot_set"
SHAPE = Shape(requests=2, topk=192, slots=256, context_rows=2048, steps=6)
ROW_BYTES = 48
SMS = 8
LONG = ("kept_0.9", "one_more")
TRACES = ("kept_0.5", "misses_20", "all_new", "twice", *LONG)
LONG_STEPS = 24
"""With few misses, the hand of CLOCK goes round after more steps than the shape has."""
VARIANTS = ("table_lru", "table_clock", "table_spread")


def source(request: int) -> Source:
    """The pool of resolving.cpp."""
    rows = np.arange(7 * SHAPE.context_rows + SHAPE.requests, dtype=np.int32)
    pool = np.repeat(rows.astype(np.uint8)[:, None], ROW_BYTES, axis=1)
    pool[:, :4] = rows[:, None].view(np.uint8)
    return Source(7 * np.arange(SHAPE.context_rows) + request, pool, 0xA5)


def results(folder: Path, variant: str, trace: Trace, tmp_path: Path) -> np.ndarray:
    """For each step: slots of the ids, rows and last uses of the slots, and bytes, uint8."""
    quiet = [f"-Wno-{what}" for what in ("unknown-pragmas", "attributes", "unused-parameter")]
    defined = [f"-DTOKEN_BYTES={ROW_BYTES}", f'-DVARIANT="{variant}.cu"', f"-DSMS={SMS}"]
    cuda = toolchain().include
    include = [f"-I{HERE}", f"-isystem{cuda}", f"-isystem{cuda / 'cccl'}"]
    flags = ["-std=c++17", "-O1", *include, *defined, *quiet]
    sources, kernel = [HERE / "resolving.cpp"], folder / f"{variant}.cu"
    made = program(f"on-cpu-{variant}", sources, folder, flags, more=[kernel])
    shape = [SHAPE.requests, SHAPE.topk, SHAPE.slots, SHAPE.context_rows, len(trace.ids)]
    given, got = tmp_path / "trace", tmp_path / "results"
    given.write_bytes(np.array(shape, np.int32).tobytes() + trace.ids.tobytes())
    done = subprocess.run(
        [made, given, got], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return np.fromfile(got, np.uint8).reshape(len(trace.ids), -1)


def first_difference(
    folder: Path, variant: str, name: str, tmp_path: Path, steps: int = SHAPE.steps
) -> str | None:
    trace = draw_trace(name, replace(SHAPE, steps=steps), np.random.default_rng(1))
    kind = Clock if variant == "table_clock" else HotSet
    references = [kind(SHAPE.slots, SHAPE.context_rows) for _ in range(SHAPE.requests)]
    sources = [source(request) for request in range(SHAPE.requests)]
    ends = np.cumsum(
        [4 * SHAPE.requests * count for count in (SHAPE.topk, SHAPE.slots, SHAPE.slots)]
    )
    for ids, step in zip(trace.ids, results(folder, variant, trace, tmp_path), strict=True):
        out, rows, last_used, buffer = np.split(step, ends)
        for request, wanted in enumerate(ids):
            slots, held = (
                each.view(np.int32).reshape(len(ids), -1)[request] for each in (out, rows)
            )
            got = Contents(
                slots,
                held,
                last_used.view(np.int32).reshape(len(ids), -1)[request],
                buffer=buffer.reshape(len(ids), -1, ROW_BYTES)[request],
            )
            done = references[request].step(wanted)
            if wrong := difference(references[request], done, wanted, got, sources[request]):
                return wrong
    return None


def on_traces() -> Iterator[Any]:
    """Parameters of each variant: its name, and the trace."""
    for variant in VARIANTS:
        for name in TRACES:
            # The faults are in files of table_clock.
            is_long = name in LONG or variant != "table_clock"
            yield pytest.param(variant, name, marks=[pytest.mark.long] if is_long else [])


@pytest.mark.parametrize(("variant", "name"), [*on_traces()])
def test_state_slots_and_bytes_agree_with_the_reference(
    variant: str, name: str, tmp_path: Path
) -> None:
    steps = LONG_STEPS if name == "misses_20" else SHAPE.steps
    assert first_difference(HOT_SET, variant, name, tmp_path, steps) is None
