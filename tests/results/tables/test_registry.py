"""A new table is one entry in the registry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from analysis.results.tables import rows
from analysis.results.tables.registry import TABLES, Table
from tests.roots import make_inputs, make_root
from tests.synthetic import CALLS, write_machine


def test_an_entry_is_made_joined_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Table(rows.SkippedRow, "summary:skipped", ("samples",))
    monkeypatch.setitem(cast(Any, TABLES), "left_out", entry)
    root = make_root(tmp_path)
    write_machine(root / "results", "box", CALLS)
    tables = make_inputs(root).tables
    assert (root / "build" / "left_out.csv").read_text().startswith(",".join(entry.columns))
    assert tables["left_out"].equals(tables["skipped"])


def test_the_names_of_tables_take_no_slow_import() -> None:
    """Snakemake reads them at each start."""
    code = "import analysis.results.tables.registry, sys; print('pandas' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.strip() == "False", found.stderr
