"""Names of kernels by their symbols."""

from __future__ import annotations

import pytest

from analysis.toolchain.kernel_names import kernel_name

NAMES = {
    "_Z11gather_rows6Gather": "gather_rows",
    "_Z9copy_rowsILi4ELi2EEv4Rows": "copy_rows<4, 2>",
    "_Z4holdIN12_GLOBAL__N_16Shift8EEvT_": "hold",
    "cudaLaunchKernel": "cudaLaunchKernel",
    "_Z": "_Z",
}


@pytest.mark.parametrize(("symbol", "name"), NAMES.items())
def test_kernels_have_readable_names(symbol: str, name: str) -> None:
    assert kernel_name(symbol) == name
