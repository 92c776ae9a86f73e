"""All samples as one Parquet file, for those who read them with a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import duckdb

from analysis.interface import SAMPLE_TYPES

NAME: Final = "samples.parquet"
_SQL_TYPES: Final = {str: "VARCHAR", int: "INTEGER", float | None: "DOUBLE"}
TYPES: Final = {"machine": "VARCHAR"} | {
    name: _SQL_TYPES[kind] for name, kind in SAMPLE_TYPES.items()
}
"""Columns and their types in SQL: the machine, then those of a file of samples."""


def write_parquet(files: Sequence[Path], target: Path) -> None:
    """Write the samples of all `files`, `<machine>/<study>/<variant>.csv`, to `target`."""
    own = {name: kind for name, kind in TYPES.items() if name != "machine"}
    declared = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
    words = [name for name, kind in own.items() if kind == "VARCHAR"]
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE samples ({declared})")
        if files:
            database.execute(
                "INSERT INTO samples SELECT split_part(filename, '/', -3), * EXCLUDE filename"
                " FROM read_csv($files, columns=$columns, force_not_null=$words, header=true,"
                " delim=',', quote='\"', escape='\"', filename=true, auto_detect=false)",
                {"files": [str(file) for file in files], "columns": own, "words": words},
            )
        database.table("samples").write_parquet(str(target), compression="zstd")
