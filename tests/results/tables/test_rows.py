"""Tables under build/, read by the types of their rows."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest

from analysis.results.tables import rows
from analysis.results.tables.rows import (
    DTYPES,
    ClaimPartRow,
    ClaimRow,
    SkippedRow,
    columns,
    read_table,
    rows_of,
)
from analysis.toolchain.ptxas import KernelResources

CLAIM = (
    "copy",
    "it",
    "box",
    "not tested",
    "why; so",
    math.nan,
    math.nan,
    0.5,
    1.0,
    "",
    "",
    *[math.nan] * 3,
    "0.5|1",
    2,
    "",
    2,
    1,
    1,
    "",
)


def test_missing_text_is_empty_and_a_missing_number_is_nan(tmp_path: Path) -> None:
    pd.DataFrame([CLAIM], columns=columns(ClaimRow)).to_csv(tmp_path / "c.csv", index=False)
    (row,) = rows_of(read_table([tmp_path / "c.csv"], ClaimRow), ClaimRow)
    assert (row.reason, row.unit, row.case) == ("why; so", "", "")
    assert math.isnan(row.published) and math.isnan(row.measured)
    assert (row.ci_low, row.ci_high) == (0.5, 1.0)


def test_text_that_looks_like_a_number_or_a_gap_stays_text(tmp_path: Path) -> None:
    text = "machine,study,variant,case,status,reason,stale\n007,s,None,NA,skipped,1,0\n"
    (tmp_path / "s.csv").write_text(text)
    (row,) = rows_of(read_table([tmp_path / "s.csv"], SkippedRow), SkippedRow)
    assert row == SkippedRow("007", "s", "None", "NA", "skipped", "1", 0)
    assert type(row.stale) is int


def test_empty_table_has_columns_and_types(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    (tmp_path / "header.csv").write_text(",".join(columns(ClaimPartRow)) + "\n")
    for name in ("none.csv", "empty.csv", "header.csv"):
        table = read_table([tmp_path / name], ClaimPartRow)
        assert list(table.columns) == columns(ClaimPartRow)
        assert [str(table[name].dtype) for name in ("part", "measured")] == ["int64", "float64"]
        assert rows_of(table, ClaimPartRow) == []


def test_word_in_a_column_of_numbers_is_rejected(tmp_path: Path) -> None:
    lines = [",".join(columns(KernelResources)), "s,v,sm_90,k,many,0,0,0,0"]
    (tmp_path / "r.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="many"):
        read_table([tmp_path / "r.csv"], KernelResources)


def test_every_row_has_types_that_can_be_read() -> None:
    kinds = [kind for name, kind in vars(rows).items() if name.endswith("Row")]
    assert ClaimRow in kinds
    tables = [kind for kind in kinds if isinstance(kind, type)]
    assert {str(field.type) for kind in tables for field in fields(kind)} == set(DTYPES)
