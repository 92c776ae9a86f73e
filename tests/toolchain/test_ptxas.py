"""Resources of kernels by the assembler."""

from __future__ import annotations

import csv
from pathlib import Path

from analysis.base.records import write_records
from analysis.toolchain.ptxas import COLUMNS, KernelResources, parse_ptxas

TWO_KERNELS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z3twoPKdPd' for 'sm_90'
ptxas info    : Function properties for _Z3twoPKdPd
    816 bytes stack frame, 808 bytes spill stores, 864 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 816 bytes cumulative stack size
ptxas info    : Compile time = 18.959 ms
ptxas info    : Compiling entry function '_Z3onePi' for 'sm_90'
ptxas info    : Function properties for _Z3onePi
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 256 bytes smem
ptxas info    : Compile time = 1.642 ms
ptxas info    : Function properties for _Z6helperPKdi
    16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
"""


def test_ptxas_reports_are_read_kernel_by_kernel(tmp_path: Path) -> None:
    found = list(parse_ptxas(TWO_KERNELS, "study", "variant"))
    assert found == [
        KernelResources("study", "variant", "sm_90", "_Z3twoPKdPd", 32, 0, 816, 808, 864),
        KernelResources("study", "variant", "sm_90", "_Z3onePi", 10, 256, 0, 0, 0),
    ]
    write_records(tmp_path / "resources.csv", KernelResources, found)
    with (tmp_path / "resources.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == COLUMNS
    assert rows[0]["spill_load_bytes"] == "864"


def test_a_report_without_kernels_is_no_rows() -> None:
    assert list(parse_ptxas("", "study", "variant")) == []
    assert list(parse_ptxas("ptxas info    : 0 bytes gmem\n", "study", "variant")) == []
