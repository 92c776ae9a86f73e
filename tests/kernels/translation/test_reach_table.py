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
from kernels.translation.reach_table import (
    CLOCK,
    HELD,
    READS,
    VARIANT,
    WALKS,
    agreements,
    is_current,
    probes,
)
from tests.linked import KNOWN

GIB = 2**30


def facts(*, fitted: bool = True) -> Any:
    """A machine that gathers 656-byte rows from 1 GiB at 40 GB/s, with a fit if `fitted`."""
    case = "pool_mib=1024,row_bytes=656,order=random,rows=262144"
    row = SimpleNamespace(
        machine="box", variant=VARIANT, metric=CLOCK, case=case, median=READS * 656 / 40e9
    )
    parameters = [
        SimpleNamespace(machine="box", parameter=field.name, value=getattr(KNOWN, field.name))
        for field in fields(Walker)
    ]
    inputs = SimpleNamespace(
        parameters=parameters * fitted, machines={"box": {}}, called=lambda machine: machine
    )
    return SimpleNamespace(inputs=inputs, measured={"row": row})


def write(folder: Path, **changes: Any) -> Path:
    """An output of the probe on `box`."""
    content = {
        "gpu": "NVIDIA H200",
        "sm": 90,
        "host_page_tables": 0,
        "pool_bytes": 40 * GIB,
        "held": 9000.0,
        "covers_bytes": 65536,
        "reach_bytes": 9000.0 * 65536,
        "walks_per_s": 1.2e8,
        "walk_s": 8e-9,
        "doubling_s": 1e-9,
        "fit_error": 0.02,
        "row_bytes": 656,
        "advice": "Keep the pool within 0.5 GiB.",
        "pools": [[GIB, 44e9, 38e9, 3e8]],
    } | changes
    (folder / "box").mkdir(exist_ok=True)
    file = folder / "box" / f"reach_{content['pool_bytes']}.json"
    file.write_text(json.dumps(content))
    return file


def test_figures_that_both_have_are_paired_by_name(tmp_path: Path) -> None:
    write(tmp_path)
    paired = {one.name: one for one in agreements(facts(), tmp_path)}
    gather = "rows of 656 B from 1 GiB"
    assert list(paired) == [HELD, WALKS, gather, f"{gather}, predicted"]
    assert paired[HELD].by_probe / paired[HELD].by_study == pytest.approx(9000 / 8192)
    assert paired[gather].by_probe / paired[gather].by_study == pytest.approx(1.1)
    predicted = paired[f"{gather}, predicted"]
    assert predicted.by_probe / predicted.by_study == pytest.approx(0.95)
    # A walk, one of the level above in half of the cases, and first walks to a sixth of the lines.
    walk_s = 14e-9 + 10e-9 / 2 + 14e-9 / 6
    assert paired[WALKS].by_study == pytest.approx(1 / walk_s, rel=0.01)
    assert len(agreements(facts(fitted=False), tmp_path)) == 2
    write(tmp_path, pools=[[3 * GIB, 44e9, 38e9, 3e8]])
    assert {one.name for one in agreements(facts(), tmp_path)} == {HELD, WALKS}
    write(tmp_path, held=None, covers_bytes=None, reach_bytes=None, walks_per_s=None)
    assert [one.name for one in agreements(facts(), tmp_path)] == [gather]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"held": -1}, "held"),
        ({"pools": [[1, 2, 3]]}, "pools.0"),
        ({"row_bytes": "<script>"}, "row_bytes"),
    ],
)
def test_a_wrong_output_is_named(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    write(tmp_path, pool_bytes=4 * GIB)
    assert [probe["pool_bytes"] for probe in probes(tmp_path / "box").values()] == [4 * GIB]
    file = write(tmp_path, **changes)
    with pytest.raises(FieldError, match=f"{file.name}: .*{expected}"):
        probes(tmp_path / "box")


def test_outputs_of_another_source_are_not_current(tmp_path: Path) -> None:
    source = tmp_path / "reach.cu"
    source.write_text("")
    output, other = tmp_path / "reach.json", tmp_path / "reach_4gib.json"
    assert not is_current(output, source)
    (tmp_path / "source.sha256").write_text(f"{hashlib.sha256(b'').hexdigest()}  reach.json\n")
    assert is_current(output, source) and not is_current(other, source)
    source.write_text("int")
    assert not is_current(output, source)
