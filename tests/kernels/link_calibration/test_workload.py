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
)
def test_the_reference_equals_a_plain_loop(row: int, spare: int, offset: int, rows: int) -> None:
    rng = np.random.default_rng(0)
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


def test_public_rates_stand_beside_what_the_model_allows(calibrated: Inputs) -> None:
    study = STUDIES["link_calibration"]
    assert not page_tables.predicted_links(StudyFacts(calibrated, study)).rows  # unknown link
    host = {**calibrated.machines["box"], "pcie_generation": 5, "pcie_width": 16}
    facts = StudyFacts(replace(calibrated, machines={"box": host}), study)
    rows = page_tables.predicted_links(facts).rows
    assert {row[5] for row in rows} == {"measured here", "refuted", "not refuted"}
    assert {row[0] for row in rows if row[5] == "measured here"} == {"PCIe 5.0 x16"}
    assert all(rate <= link.packet_rate for link, _, rate in page_tables.predictions(facts))
