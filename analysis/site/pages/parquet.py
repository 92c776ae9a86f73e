"""All samples as one Parquet file, for those who read them with a program."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import Final

import duckdb
import pandas as pd

from analysis.site.facts.inputs import read_samples
from analysis.site.interface import SAMPLE_TYPES

NAME: Final = "samples.parquet"
_SQL_TYPES: Final = {str: "VARCHAR", int: "INTEGER", float | None: "DOUBLE"}
TYPES: Final = {"machine": "VARCHAR"} | {
    name: _SQL_TYPES[kind] for name, kind in SAMPLE_TYPES.items()
}
"""Columns and their types in SQL: the machine, then those of a sample."""


def write_parquet(files: Sequence[Path], target: Path) -> None:
    """Write the samples of all `files`, `<machine>/<study>/<variant>.csv`, to `target`."""
    # Fields are plain values, and astuple would copy each.
    fields = attrgetter(*SAMPLE_TYPES)
    rows = (
        (file.parents[1].name, *fields(sample)) for file in files for sample in read_samples(file)
    )
    table = pd.DataFrame(rows, columns=list(TYPES)).astype({"value": float, "sm_mhz": float})
    declared = ", ".join(f'"{name}" {kind}' for name, kind in TYPES.items())
    with duckdb.connect() as database:
        database.register("read", table)
        database.execute(f"CREATE TABLE samples ({declared})")
        database.execute("INSERT INTO samples FROM read")
        database.table("samples").write_parquet(str(target), compression="zstd")
