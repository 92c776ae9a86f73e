"""The study on a GPU: PyTorch's settings, and memory in use by streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.study import Case
from analysis.toolchain.modules import load_python
from analysis.toolchain.packages import PACKAGES
from tests.compiled import gpu_samples
from tests.repository import STUDIES

pytestmark = pytest.mark.gpu

STUDY = STUDIES["fragmentation"]


def measured(name: str, pattern: str) -> Any:
    """Samples of a variant's replay of a pattern, after its check."""
    for need in PACKAGES.keys() & set(STUDY.variant(name).needs):
        pytest.importorskip(PACKAGES[need].module)
    workload = load_python(STUDY, "workload").Workload({}, np.random.default_rng(0))
    return gpu_samples(STUDY, workload, name, Case({"pattern": pattern}, 0, "default"))


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        (variant.name, case["pattern"])
        for variant in STUDY.variants
        for case in variant.cases
        if case["pattern"] in ("growing_batch", "gathered_shards", "host_ahead")
    ],
)
def test_every_variant_serves_its_cases(name: str, pattern: str) -> None:
    samples = measured(name, pattern)
    assert set(samples) == set(STUDY.metrics)
    assert 0 < samples["op_time"] < 0.01
    assert samples["requested"] <= samples["reserved"]


def test_each_reference_has_its_own_settings_though_one_process_has_one_allocator() -> None:
    reserved = {
        name: measured(name, "growing_batch")["reserved"]
        for name in ("torch_caching", "torch_expandable", "torch_roundup")
    }
    again = measured("torch_caching", "growing_batch")["reserved"]
    assert reserved["torch_expandable"] < reserved["torch_roundup"] < reserved["torch_caching"]
    assert again == reserved["torch_caching"]


def test_pytorch_keeps_a_limit_and_the_drivers_pool_refuses_one() -> None:
    assert 0 < measured("torch_caching", "limited_272mib")["reserved"] <= 272 * 2**20
    expected = "^limit: expected an allocator that can be bounded, got cuda_malloc_async"
    with pytest.raises(ValueError, match=expected):
        measured("cuda_malloc_async", "limited_272mib")
