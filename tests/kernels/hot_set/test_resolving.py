"""Look-up and eviction of the kernels, run by blocks on the CPU, against the references."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from analysis import ROOT
from kernels.hot_set.comparison import Contents, Source, difference
from kernels.hot_set.policies import Clock
from kernels.hot_set.reference import HotSet
from kernels.hot_set.traces import Shape, Trace, draw_trace
from tests.compiled import program, toolchain, with_fault

HERE = Path(__file__).parent
HOT_SET = ROOT / "kernels" / "hot_set"
SHAPE = Shape(requests=2, topk=192, slots=256, context_rows=2048, steps=8)
TRACES = ("kept_0.5", "kept_0.9", "misses_20", "all_new", "one_more", "twice")
NOWHERE = Source(np.zeros(0), np.zeros((0, 0)))


def results(folder: Path, is_clock: bool, trace: Trace, tmp_path: Path) -> np.ndarray:
    """For each step: slots of the ids, then rows and last uses of the slots, int32."""
    quiet = [f"-Wno-{what}" for what in ("unknown-pragmas", "attributes", "unused-parameter")]
    more = [f"-I{HERE}", f"-isystem{toolchain().include}", "-DTOKEN_BYTES=656", *quiet]
    flags = ["-std=c++17", "-O1", *more, *(["-DCLOCK"] if is_clock else [])]
    made = program(f"resolving-{is_clock}", [HERE / "resolving.cpp"], folder, flags)
    shape = [SHAPE.requests, SHAPE.topk, SHAPE.slots, SHAPE.context_rows, len(trace.ids)]
    given, got = tmp_path / "trace", tmp_path / "results"
    given.write_bytes(np.array(shape, np.int32).tobytes() + trace.ids.tobytes())
    done = subprocess.run([made, given, got], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return np.fromfile(got, np.int32).reshape(len(trace.ids), -1)


def first_difference(
    folder: Path, is_clock: bool, name: str, tmp_path: Path, steps: int = 8
) -> str | None:
    trace = draw_trace(name, replace(SHAPE, steps=steps), np.random.default_rng(1))
    kind = Clock if is_clock else HotSet
    references = [kind(SHAPE.slots, SHAPE.context_rows) for _ in range(SHAPE.requests)]
    ends = np.cumsum([SHAPE.requests * count for count in (SHAPE.topk, SHAPE.slots)])
    for ids, step in zip(trace.ids, results(folder, is_clock, trace, tmp_path), strict=True):
        of_requests = (part.reshape(SHAPE.requests, -1) for part in np.split(step, ends))
        for reference, wanted, out, rows, last_used in zip(
            references, ids, *of_requests, strict=True
        ):
            got = Contents(out, rows, None if is_clock else last_used)
            if wrong := difference(reference, reference.step(wanted), wanted, got, NOWHERE):
                return wrong
    return None


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("is_clock", [False, True])
def test_state_and_slots_agree_with_the_reference(
    is_clock: bool, name: str, tmp_path: Path
) -> None:
    assert first_difference(HOT_SET, is_clock, name, tmp_path) is None


CLOCK, ROWS = "clock_resolve.h", "table_rows.h"
FAULTS = {
    "bits of passed slots stay": (CLOCK, "~(1U << slot % kWarp)", "~0U", "misses_20"),
    "the hand stays on the last slot": (CLOCK, "turned(slot, 1)", "slot", "misses_20"),
    "only a whole round clears bits": (CLOCK, "|| fresh < all.missing", "", "misses_20"),
    "an evicted row keeps its slot": (ROWS, "slot_of[evicted] = kNotResident;", ";", "kept_0.5"),
    "new rows have no bit": (CLOCK, "set_bit(shared_.used_now, slot);\n    }", "}", "kept_0.5"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_clock_is_caught(fault: str, tmp_path: Path) -> None:
    file, old, new, trace = FAULTS[fault]
    folder = with_fault(HOT_SET, tmp_path / "kernels" / "hot_set", file, old, new)
    assert first_difference(folder, True, trace, tmp_path, steps=24) is not None
