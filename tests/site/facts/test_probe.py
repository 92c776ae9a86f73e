"""The probe's figures beside those of the study of translation, by names that both know."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.base.errors import FieldError
from analysis.results.model.translation import Walker
from analysis.results.tables.rows import ParameterRow, columns
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.probe import HELD, READS, WALKS, agreements, is_current, probes
from analysis.site.facts.rows import MeasuredRow
from tests.results.model.test_translation import KNOWN

GIB = 2**30


def inputs(*, fitted: bool = True) -> Inputs:
    """A machine that gathers 656-byte rows from 1 GiB at 40 GB/s, with a fit if `fitted`."""
    row = dict.fromkeys(columns(MeasuredRow), "") | dict.fromkeys(
        ("ci_low", "ci_high", "q1", "q3", "any_low", "any_high", "throttled"), 0.0
    )
    row |= {"machine": "box", "study": "translation", "variant": "rows_streaming"}
    row |= {"case": "pool_mib=1024,row_bytes=656,order=random,rows=262144", "metric": "gpu_time"}
    row |= {"unit": "s", "median": READS * 656 / 40e9}
    names = [field.name for field in fields(Walker)] if fitted else []
    parameters = [
        dict.fromkeys(columns(ParameterRow), "")
        | {"machine": "box", "parameter": name, "value": getattr(KNOWN, name)}
        for name in names
    ]
    tables = {
        "summary": pd.DataFrame([row]),
        "model_parameters": pd.DataFrame(parameters, columns=columns(ParameterRow)),
    }
    nothing: Any = {}
    return Inputs(
        **dict.fromkeys(("studies", "derived", "absent", "refused"), nothing),
        results=Path(),
        tables=tables,
        resources=pd.DataFrame(),
        machine_code={},
        machines={"box": {"gpu": "NVIDIA H200"}},
        runs=[],
        captures=[],
    )


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


def test_figures_of_both_are_paired_by_name(tmp_path: Path) -> None:
    write(tmp_path)
    found = {one.name: one for one in agreements(inputs(), tmp_path)}
    gather = "rows of 656 B from 1 GiB"
    assert list(found) == [HELD, WALKS, gather, f"{gather}, predicted"]
    assert found[HELD].difference == pytest.approx(9000 / 8192 - 1)
    assert found[gather].difference == pytest.approx(0.1)
    assert found[f"{gather}, predicted"].difference == pytest.approx(-0.05)
    # A walk, one of the level above in half of the cases, and first walks to a sixth of the lines.
    walk_s = 14e-9 + 10e-9 / 2 + 14e-9 / 6
    assert found[WALKS].by_study == pytest.approx(1 / walk_s, rel=0.01)


def test_a_machine_without_a_fit_compares_rates_alone(tmp_path: Path) -> None:
    write(tmp_path)
    assert len(agreements(inputs(fitted=False), tmp_path)) == 2


def test_what_the_probe_could_not_find_out_is_not_compared(tmp_path: Path) -> None:
    write(tmp_path, held=None, covers_bytes=None, reach_bytes=None, walks_per_s=None)
    assert [one.name for one in agreements(inputs(), tmp_path)] == ["rows of 656 B from 1 GiB"]


def test_other_pools_and_rows_are_not_compared(tmp_path: Path) -> None:
    write(tmp_path, pools=[[3 * GIB, 44e9, 38e9, 3e8]])
    write(tmp_path, pool_bytes=GIB, row_bytes=512)
    assert {one.name for one in agreements(inputs(), tmp_path)} == {HELD, WALKS}


def test_outputs_come_by_size_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    write(tmp_path)
    write(tmp_path, pool_bytes=4 * GIB)
    found = probes(tmp_path / "box")
    assert [probe["pool_bytes"] / GIB for probe in found.values()] == [4, 40]
    assert probes(tmp_path / "another") == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"held": -1}, "held"),
        ({"reach_bytes": 1e15}, "held times covers_bytes"),
        ({"pools": [[1, 2, 3]]}, "pools.0"),
        ({"pools": []}, "pools"),
        ({"advice": "a\nb"}, "advice"),
        ({"gpu": "<script>"}, "gpu"),
        ({"serial": "1"}, "serial"),
    ],
)
def test_a_wrong_output_is_named(tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
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
