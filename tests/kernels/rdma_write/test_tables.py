"""The offsets of counters, by the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.toolchain.derived import derive_tables, read_derived
from analysis.toolchain.libfabric import Libfabric
from tests.kernels.rdma_write.sessions import STUDY


def test_counters_lie_where_the_compiler_puts_them(tmp_path: Path, libfabric: Libfabric) -> None:
    assert derive_tables(STUDY, tmp_path / "modules", tmp_path) == {}
    table = read_derived(tmp_path)["counter_fields"]
    fields = {name: rows.set_index("field")["offset"] for name, rows in table.groupby("variant")}
    assert set(fields["threads_shared_atomic"] // 64) == {0}
    array, padded = fields["sharded_array"], fields["sharded_padded"]
    assert array["posted[7]"] - array["posted[0]"] == 7 * 8
    assert array["finished_devices"] == 2 * 64
    assert len(set(padded // 64)) == len(padded) == 17


def test_without_a_compiler_the_reason_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "no-compiler"))
    absent = derive_tables(STUDY, tmp_path / "modules", tmp_path)
    assert "no-compiler: cannot be run" in absent["counter_fields"]
