"""Counting threads, built as for a measurement, except for the bindings."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.measure.cores import cores
from analysis.study import Case
from analysis.toolchain.compile import CompileSettings, compile_object
from analysis.toolchain.compilers import find_toolchain
from analysis.toolchain.modules import load_python
from tests.compiled import module
from tests.repository import STUDIES

STUDY = STUDIES["counters"]
HERE = cores()


@pytest.mark.long  # the bindings are compiled for this test alone
@pytest.mark.parametrize("name", STUDY.variant_names)
def test_no_increment_is_lost(name: str) -> None:
    counting = module(STUDY, STUDY.variant(name))
    for threads in (1, 2):
        chosen = [HERE[i % len(HERE)] for i in range(threads)]
        for batches, work in ((1, 0), (2, 3), (100, 0)):
            seconds, made, total = counting.count(chosen, batches, work)
            # The first thread ends the run; each of the others has counted at least one batch.
            fewest = batches + threads - 1
            assert seconds > 0 and total == made
            assert fewest * counting.BATCH <= made <= threads * batches * counting.BATCH
    for arguments, message in (
        (([], 1, 0), "cores: expected 1 to 256, got 0"),
        ((HERE[:1], 0, 0), "batches: expected at least 1, got 0"),
        (([100_000], 1, 0), "pinning to core"),
    ):
        with pytest.raises((ValueError, RuntimeError), match=message):
            counting.count(*arguments)


STORED = r"mov\s+%r\w+,(?:0x\w+)?\(%r\w+\)"
INCREMENTS = {
    "shared_atomic": r"lock (?:add|inc|xadd)",
    "sharded_array": STORED,
    "sharded_padded": STORED,
    "thread_local_published": r"(?:add\s+\$0x1,|inc\s+)%r\w+",
}
"""The instruction of an increment that takes the most time, or that a compiler could merge."""
UNROLLED = 32
"""As in count.h."""


@pytest.mark.long
@pytest.mark.parametrize("name", INCREMENTS)
def test_no_increment_is_merged_or_moved_out_of_the_loop(name: str, tmp_path: Path) -> None:
    out = tmp_path / "variant.o"
    source = STUDY.folder / f"{name}.cpp"
    compile_object(source, CompileSettings(), find_toolchain(), "sm_90", out)
    command = ["objdump", "-d", "--no-show-raw-insn", str(out)]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counts = [0]  # of increments between two jumps or calls
    for line in code.splitlines():
        _, _, instruction = line.partition(":\t")
        if re.match(r"(?:j|call|ret)", instruction):
            counts.append(0)
        counts[-1] += re.match(INCREMENTS[name], instruction) is not None
    assert max(counts) == UNROLLED


def test_a_thread_without_a_core_is_skipped() -> None:
    many = len(HERE) + 1
    workload = load_python(STUDY, "workload").Workload({}, np.random.default_rng(1))
    with pytest.raises(Skip, match=f"{many} threads need {many} cores, here are {many - 1}"):
        workload.prepare(Case({"threads": many, "work": 0}, 0, "default"))
