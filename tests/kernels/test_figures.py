"""Figures that studies compute for their charts and tables, from a few made-up times."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis.base.errors import FieldError
from analysis.results.tables.links import parameter_table
from analysis.site.facts.inputs import load_inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Study, case_id
from analysis.toolchain.modules import load_python
from kernels.hot_set import page_tables
from kernels.translation import page_tables as REACH
from tests.conformance.results import FIT
from tests.repository import STUDIES
from tests.synthetic import measured_row

HOT_SET, TRANSLATION = STUDIES["hot_set"], STUDIES["translation"]
NVLINK = load_python(STUDIES["peers"], "page_tables")
STEP, PACKED = "v3_block_per_request", "packed_on_request"
MISSES_ALONE = "ceiling_misses_alone"
GIB = 2**30


def facts_of(study: Study, folder: Path, rows: Mapping[tuple[str, str, str], float]) -> StudyFacts:
    """A machine called box that has measured these values of (variant, case, metric)."""
    measured = pd.DataFrame([measured_row(study, *at, value) for at, value in rows.items()])
    nothing = load_inputs(folder, folder, {study.name: study})
    return StudyFacts(nothing.with_tables(summary=measured), study)


def hot_set(folder: Path, seconds: Mapping[tuple[str, int], float]) -> StudyFacts:
    """Host times in the usual cases, by variant and misses."""
    case = "requests=1,topk=2048,slots=4096,misses={},pool_mib=40960,layout=scattered"
    rows = {(name, case.format(n), "host_time"): time for (name, n), time in seconds.items()}
    return facts_of(HOT_SET, folder, rows)


@pytest.mark.parametrize(
    ("all_rows", "expected"), [(15e-6, "slower"), (60e-6, "faster"), (20e-6, "undecided")]
)
def test_a_hot_set_is_faster_by_its_interval(
    all_rows: float, expected: str, tmp_path: Path
) -> None:
    seconds = {(STEP, 410): 20e-6, (MISSES_ALONE, 2048): all_rows, (MISSES_ALONE, 410): 1e-6}
    ((_, *found),) = page_tables.hit_rates(hot_set(tmp_path, seconds)).rows
    times = [f"{all_rows * 1e6:.2f} µs", f"20.00 µs, {expected}"]
    assert found == ["1", "40 GiB", "80.0 %", *times, "not measured", "not measured"]


def test_packed_misses_are_compared_with_packed_rows_only(tmp_path: Path) -> None:
    facts = hot_set(tmp_path, {(PACKED, 410): 20e-6, (MISSES_ALONE, 2048): 60e-6})
    assert not page_tables.hit_rates(facts).rows
    gathers = STUDIES["pool_gather"]
    case = "rows=2048,pool_mib=40960,layout=scattered"
    row = measured_row(gathers, PACKED, case, "host_time", 40e-6)
    inputs = facts.inputs.with_tables(summary=pd.concat([facts.summary, pd.DataFrame([row])]))
    inputs = replace(inputs, studies={"hot_set": HOT_SET, "pool_gather": gathers})
    ((*_, by_sms, _, every, found),) = page_tables.hit_rates(StudyFacts(inputs, HOT_SET)).rows
    assert [by_sms, every, found] == ["not measured", "40.00 µs", "20.00 µs, faster"]


OUTPUT = {"pool_bytes": 40 * GIB, "held": 9000.0, "row_bytes": 656, "pools": [[GIB, 44e9, 1, 1]]}


def test_figures_of_the_probe_are_beside_those_of_the_study(tmp_path: Path) -> None:
    file = tmp_path / "box" / "reach.json"
    file.parent.mkdir()
    file.write_text(json.dumps(OUTPUT))
    case = case_id({"pool_mib": 1024, "row_bytes": 656, "order": "random", "rows": REACH.READS})
    seconds = REACH.READS * 656 / 40e9
    facts = facts_of(TRANSLATION, tmp_path / "none", {(REACH.VARIANT, case, REACH.CLOCK): seconds})
    inputs = facts.inputs.with_tables(model_parameters=parameter_table({"box": FIT}))
    facts = StudyFacts(replace(inputs, machines={"box": {}}), TRANSLATION)
    rows = [row[2:6] for row in REACH.reach(facts, tmp_path).rows]
    assert rows == [
        [REACH.HELD, "8192", "9000", "+9.9 %"],
        ["rows of 656 B from 1 GiB", "40.0 GB/s", "44.0 GB/s", "+10.0 %"],
    ]
    for name, value in (("held", -1), ("pools", [[1, 2, 3]]), ("row_bytes", "<script>")):
        file.write_text(json.dumps(OUTPUT | {name: value}))
        with pytest.raises(FieldError, match=f"{file.name}: .*{name}"):
            REACH.reach(facts, tmp_path)


def test_costs_of_a_row_over_nvlink_predict_the_sizes_that_were_held_back() -> None:
    assert NVLINK.units(48) == [2, 1.25, 1] and NVLINK.units(656) == [21, 6, 1]
    sizes, made = np.array([16, 48, 64, 112, 128, 144, 256, 320, 448]), [80e-12, 30e-12, 20e-12]
    seconds = np.array([NVLINK.units(int(size)) for size in sizes]) @ made
    seconds[3] *= 1.25  # which does not enter the fit
    found, errors = NVLINK.costs(sizes, seconds)
    assert found == pytest.approx(made) and errors == pytest.approx([0, -0.2, 0, 0], abs=1e-9)
