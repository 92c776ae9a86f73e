"""All samples as one Parquet file, for those who read them with a program."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import duckdb
import pandas as pd

from analysis.site.interface import SAMPLE_TYPES

NAME: Final = "samples.parquet"
_SQL_TYPES: Final = {str: "VARCHAR", int: "INTEGER", float: "DOUBLE"}
TYPES: Final = {"machine": "VARCHAR"} | {
    name: _SQL_TYPES[kind] for name, kind in SAMPLE_TYPES.items()
}
"""Columns and their types in SQL: the machine, then those of a sample."""


def write_parquet(samples: pd.DataFrame, target: Path) -> None:
    """Write `samples`, with the columns of TYPES, to `target`."""
    declared = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
    with duckdb.connect() as database:
        database.register("read", samples)
        database.execute(f"CREATE TABLE samples ({declared})")
        database.execute("INSERT INTO samples FROM read")
        database.table("samples").write_parquet(str(target), compression="zstd")
