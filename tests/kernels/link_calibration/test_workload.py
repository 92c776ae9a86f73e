"""The calibration's rows and expected bytes, and large copies beside public figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Case
from analysis.toolchain.modules import load_python
from kernels.common.random_bytes import random_bytes
from kernels.link_calibration import page_tables
from tests.repository import STUDIES

WORKLOADS = load_python(STUDIES["link_calibration"], "workload")
POOL = 4096


@given(
    row=st.integers(1, 6),
    spare=st.integers(0, 6),
    offset=st.integers(0, 4),
    rows=st.integers(1, 12),
    seed=st.integers(0, 2**32),
)
def test_the_reference_equals_a_plain_loop(
    row: int, spare: int, offset: int, rows: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pool = random_bytes(POOL, rng)
    sizes = {"row_bytes": row, "stride_bytes": row + spare, "offset_bytes": offset}
    values = {name: 16 * vectors for name, vectors in sizes.items()}
    starts = WORKLOADS.row_starts(Case(values, rows * row * 16, "default"), POOL, rng)
    assert len(set(starts.tolist())) == rows
    assert ((starts - offset) % (row + spare) == 0).all()
    out = np.zeros(rows * row, WORKLOADS.VECTOR)
    WORKLOADS.gather_reference(pool.view(WORKLOADS.VECTOR), starts, 16 * row, out)
    expected = [pool[16 * start : 16 * (start + row)] for start in starts]
    assert out.tobytes() == np.concatenate(expected).tobytes()


def test_random_bytes_take_every_value_at_every_place() -> None:
    rng = np.random.default_rng(0)
    assert [random_bytes(size, rng).size for size in (0, 1, 7, 8, 4097)] == [0, 1, 7, 8, 4097]
    values = random_bytes(8 * 2**14, rng).reshape(-1, 8)
    assert [len(set(column)) for column in values.T.tolist()] == [256] * 8


def test_public_rates_stand_beside_what_the_model_allows(calibrated: Inputs) -> None:
    study = next(iter(calibrated.studies.values()))
    unknown = StudyFacts(calibrated, study)
    assert page_tables.calibrated_chip(unknown) is None
    assert not page_tables.predicted_links(unknown).rows and page_tables.stated_links(unknown).rows
    host = {**calibrated.machines["box"], "pcie_generation": 5, "pcie_width": 16}
    facts = StudyFacts(replace(calibrated, machines={"box": host}), study)
    known = page_tables.calibrated_chip(facts)
    assert known is not None and known[1].name == "pcie5_x16"
    held, shown = page_tables.predictions(facts), page_tables.predicted_links(facts).rows
    assert {row[0] for row in shown if row[5] == "measured here"} == {known[1].title}
    assert all(predicted <= link.packet_rate for link, _, predicted in held)
    assert len(shown) == len(held)
