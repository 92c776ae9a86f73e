"""Training on a GPU: every variant does all works, with the same results."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.compiled import gpu_samples
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

STUDY = STUDIES["training"]


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    """One that has not used CUDA, which this one may have."""
    pytest.importorskip("torch")
    with ProcessPoolExecutor(1, get_context("spawn")) as made:
        yield made


@cache
def workload() -> Any:
    made = load_python(STUDY, "workload").Workload
    made.before_cuda()
    return made({}, np.random.default_rng(0))


def samples_of(name: str, work: str) -> dict[str, Any]:
    return gpu_samples(STUDY, workload(), name, Case({"work": work}, 0, "default"))


@pytest.mark.parametrize(
    ("name", "work"),
    [(variant.name, case["work"]) for variant in STUDY.variants for case in variant.cases],
)
def test_every_variant_does_its_works(process: ProcessPoolExecutor, name: str, work: str) -> None:
    samples = process.submit(samples_of, name, work).result()
    assert set(samples) <= set(STUDY.metrics)
    assert 0 < samples["host_time"] < 1
    assert samples["active"] <= samples["reserved"]
    assert 0 < samples.get("allocation_share", 0.5) < 1
