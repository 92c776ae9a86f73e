"""Translation on a GPU: correct kernels, and reads of every kind of memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.study import Case, Study
from analysis.toolchain.modules import load_python
from kernels.common.large_pool import KINDS, LargePool
from tests.compiled import gpu_module, study_with_fault
from tests.kernels.translation.fake import MIB, TRANSLATION, lines, rows

pytestmark = pytest.mark.gpu

CASES = {
    "independent_lines": [
        lines(64, 64, 4096),
        lines(1000, 4, 9999, "ascending"),
        lines(7, 2048, 33),
    ],
    "dependent_lines": [lines(64, 64, 8192, read=16), lines(3, 4, 5, "ascending", read=16)],
    "rows": [rows(16, 33), rows(656, 1000), rows(1024, 7, "ascending"), rows(4096, 200)],
    "rows_streaming": [rows(656, 1000), rows(4096, 200)],
    "copy_engine": [rows(656, 1000)],
}


def outcome(study: Study, name: str, stream: int, case: Case) -> str | None:
    """Result of the study's check for the first launch after another one."""
    from analysis.measure.memory import synchronize

    constants = {"pool_mib": 128, "kinds_mib": 64, "largest_bytes": 2 * MIB}
    workload = load_python(study, "workload").Workload(constants, np.random.default_rng(0))
    inputs = workload.prepare(case)  # keeps the memory of the operation alive
    operation = inputs.bind(study.variant(name), gpu_module(study, name))
    operation.launch(stream)
    operation.poison()
    operation.launch(stream)
    synchronize(stream)
    wrong: str | None = operation.check()
    return wrong


@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name, cases in CASES.items() for case in cases], ids=str
)
def test_variant_is_correct(name: str, case: Case, stream: int) -> None:
    assert outcome(TRANSLATION, name, stream, case) is None


@pytest.mark.parametrize("memory", KINDS)
def test_memory_of_every_kind_is_read(memory: str, stream: int) -> None:
    try:
        assert (
            outcome(TRANSLATION, "independent_lines", stream, lines(64, 64, 999, memory=memory))
            is None
        )
    except Skip as reason:
        pytest.skip(str(reason))


def test_an_aliased_pool_is_read_beyond_its_first_address() -> None:
    from analysis.measure.memory import cuda, cudart

    size = 2**30 + 3 * MIB
    pool = LargePool(size, np.random.default_rng(0), "aliased")
    landed = np.empty(3 * MIB, np.uint8)
    kind = cudart.cudaMemcpyKind.cudaMemcpyDefault
    cuda(cudart.cudaMemcpy(landed.ctypes.data, pool.pointer + 2**30, landed.size, kind))
    assert np.array_equal(landed, pool.bytes[: landed.size])
    pool.close()


FAULTS = {
    "neighbouring lanes are not combined": ("independent_lines", "other > 0;", "other > 1;"),
    "a read is left out": ("independent_lines", "read < walk.reads)", "read < walk.reads - 1)"),
    "one bit": ("dependent_lines", "[i] = word;", "[i] = word ^ 1;"),
    "the last vector is missing": (
        "rows",
        "(dst, held, lane, kWarp, walk.read_vectors)",
        "(dst, held, lane, kWarp, walk.read_vectors - 1)",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_check_finds_a_wrong_kernel(fault: str, tmp_path: Path, stream: int) -> None:
    name, old, new = FAULTS[fault]
    file = "row_copy.h" if name == "rows" else f"{name}.cu"
    wrong = study_with_fault(TRANSLATION, tmp_path, file, old, new)
    assert outcome(wrong, name, stream, CASES[name][0]) is not None
