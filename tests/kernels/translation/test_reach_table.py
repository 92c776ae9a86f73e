"""The output of tools/reach.cu beside the study."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.base.errors import FieldError
from analysis.results.model.translation import Walker
from kernels.translation import reach_table as table
from tests.linked import KNOWN

GIB = 2**30
OUTPUT = {
    "pool_bytes": 40 * GIB,
    "held": 9000.0,
    "walks_per_s": 1.2e8,
    "row_bytes": 656,
    "pools": [[GIB, 44e9, 38e9, 3e8]],
}


def facts() -> Any:
    """A machine that gathers 656-byte rows from 1 GiB at 40 GB/s."""
    case = "pool_mib=1024,row_bytes=656,order=random,rows=262144"
    named = {"machine": "box", "variant": table.VARIANT, "metric": table.CLOCK, "case": case}
    parameters = [
        SimpleNamespace(machine="box", parameter=field.name, value=getattr(KNOWN, field.name))
        for field in fields(Walker)
    ]
    inputs = SimpleNamespace(parameters=parameters, machines={"box": {}})
    measured = {"row": SimpleNamespace(**named, median=table.READS * 656 / 40e9)}
    return SimpleNamespace(inputs=inputs, measured=measured)


def write(folder: Path, **changes: Any) -> Path:
    """An output of the probe on `box`."""
    file = folder / "box" / "reach.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(OUTPUT | changes))
    return file


def test_figures_that_both_have_are_paired_by_name(tmp_path: Path) -> None:
    write(tmp_path)
    ratios = {one.name: one.by_probe / one.by_study for one in table.agreements(facts(), tmp_path)}
    gather = "rows of 656 B from 1 GiB"
    # A walk, one of the level above in half of the cases, and first walks to a sixth of the lines.
    walk_s = 14e-9 + 10e-9 / 2 + 14e-9 / 6
    assert ratios == pytest.approx(
        {
            table.HELD: 9000 / 8192,
            table.WALKS: 1.2e8 * walk_s,
            gather: 1.1,
            f"{gather}, predicted": 0.95,
        },
        rel=0.01,
    )
    write(tmp_path, held=None, walks_per_s=None)
    assert [one.name for one in table.agreements(facts(), tmp_path)] == [gather]


def test_a_wrong_output_is_named(tmp_path: Path) -> None:
    for name, value in (("held", -1), ("pools", [[1, 2, 3]]), ("row_bytes", "<script>")):
        file = write(tmp_path, **{name: value})
        with pytest.raises(FieldError, match=f"{file.name}: .*{name}"):
            table.probes(tmp_path / "box")


def test_outputs_of_another_source_are_not_current(tmp_path: Path) -> None:
    source, output = tmp_path / "reach.cu", tmp_path / "reach.json"
    source.write_text("")
    assert not table.is_current(output, source)
    (tmp_path / "source.sha256").write_text(f"{hashlib.sha256(b'').hexdigest()}  reach.json\n")
    assert table.is_current(output, source)
    source.write_text("int")
    assert not table.is_current(output, source)
