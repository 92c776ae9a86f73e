"""Counting threads, built as for a measurement, except for the bindings."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.measure.cpu import cores
from analysis.study import Case
from analysis.toolchain.compile import CompileSettings, object_command
from analysis.toolchain.compilers import find_toolchain, output_of
from analysis.toolchain.modules import load_python
from tests.compiled import QUICK, module
from tests.repository import STUDIES

STUDY = STUDIES["counters"]
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


@pytest.mark.long  # the bindings are compiled for this test alone
@pytest.mark.parametrize("name", STUDY.variant_names)
def test_no_increment_is_lost(name: str) -> None:
    counting, here = module(STUDY, STUDY.variant(name), of_bindings=QUICK), cores()
    for threads, batches, work in ((1, 1, 0), (1, 2, 3), (2, 2, 3), (2, 100, 0)):
        chosen = [here[i % len(here)] for i in range(threads)]
        seconds, made, total = counting.count(chosen, batches, work)
        # The first thread ends the run; each of the others has counted at least one batch.
        assert seconds > 0 and total == made
        fewest, most = batches + threads - 1, threads * batches
        assert fewest * counting.BATCH <= made <= most * counting.BATCH


@pytest.mark.long
@pytest.mark.parametrize("name", INCREMENTS)
def test_no_increment_is_merged_or_moved_out_of_the_loop(name: str, tmp_path: Path) -> None:
    out = tmp_path / "variant.o"
    source = STUDY.folder / f"{name}.cpp"
    output_of(object_command(source, CompileSettings(), find_toolchain(), "sm_90", out))
    command = ["objdump", "-d", "--no-show-raw-insn", str(out)]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    between_jumps = re.split(r":\t(?:j|call|ret)", code)
    assert (
        max(len(re.findall(f":\t{INCREMENTS[name]}", part)) for part in between_jumps) == UNROLLED
    )


def test_a_thread_without_a_core_is_skipped() -> None:
    workload = load_python(STUDY, "workload").Workload({}, np.random.default_rng(1))
    with pytest.raises(Skip, match=r"(\d+) threads need \1 cores, here are \d+$"):
        workload.prepare(Case({"threads": len(cores()) + 1, "work": 0}, 0, "default"))
