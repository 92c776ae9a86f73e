"""Batched calls on a GPU: every piece arrives, and the experiments take their figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.compiled import gpu_module
from tests.conformance.binding import outcome
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

STUDY = STUDIES["idle_stream"]


def bound(name: str, size: int, count: int) -> Any:
    workload = load_python(STUDY, "workload").Workload(STUDY.constants, np.random.default_rng(0))
    values: dict[str, int | str] = {"size": size, "count": count, "direction": "h2d"}
    values |= {"host": "scattered", "device": "scattered"}
    workload.prepare(Case(values, size * count, "default"))
    operation = workload.bind(STUDY.variant(name), gpu_module(STUDY, name))
    operation.workload = workload  # its memory is read by address
    return operation


@pytest.mark.parametrize("name", STUDY.variant_names)
def test_every_piece_arrives(name: str, stream: int) -> None:
    for size, count in ((48, 1500), (5001, 9), (24576, 64)):
        assert outcome(bound(name, size, count), stream) is None


def test_experiments_find_a_bound_and_the_bytes_that_arrived(stream: int) -> None:
    operation = bound("experiments", 24576, 256)
    assert outcome(operation, stream) is None
    found = operation.own_samples(stream, 1)
    assert all(bound % 16 == 0 for bound in found["bound_bytes"])
    assert all(share == -1 or 0 <= share <= 1 for share in found["old_share"])
    assert outcome(operation, stream) is None  # the experiments restore what they change
