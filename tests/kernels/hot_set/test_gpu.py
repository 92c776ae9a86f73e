"""Only a GPU can show that kernels keep the state of a hot set right over many steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from analysis.study import Variant
from kernels.hot_set.traces import Shape
from tests.compiled import gpu_module
from tests.kernels.hot_set.on_gpu import (
    EQUAL_SHARE,
    HOT_SET,
    VARIANTS,
    Setting,
    bound,
    first_difference,
    pinned_pool,
)

pytestmark = pytest.mark.gpu

STEPS = 200
SMALL = Shape(requests=3, topk=96, slots=160, context_rows=1024, steps=STEPS)
USUAL = Shape(requests=1, topk=2048, slots=4096, context_rows=131072, steps=STEPS)
SMALL_TRACES = ("kept_0.5", "kept_0.98", "all_new", "all_same", "one_more", "twice")
SETTINGS = [
    *(Setting(trace, SMALL, share_32nds=EQUAL_SHARE) for trace in SMALL_TRACES),
    Setting("kept_0.9", USUAL),
]


@pytest.fixture(scope="module")
def pool() -> Iterator[np.ndarray]:
    with pinned_pool() as made:
        yield made


def expect_right(variant: Variant, pool: np.ndarray, setting: Setting, stream: int) -> None:
    if "torch" in variant.needs:
        pytest.importorskip("torch")
    operation = bound(variant, gpu_module(HOT_SET, variant.name), pool, setting)
    assert first_difference(operation, stream, STEPS) is None


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.trace)
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_step_is_right(
    variant: Variant, setting: Setting, pool: np.ndarray, stream: int
) -> None:
    expect_right(variant, pool, setting, stream)


@pytest.mark.parametrize("requests", [3, 50])
def test_every_step_is_right_where_no_thread_packs(
    requests: int, pool: np.ndarray, stream: int
) -> None:
    """Few requests leave the fetch to a second kernel, many fetch in the blocks that resolve."""
    setting = Setting("kept_0.5", replace(SMALL, requests=requests), pool_mib=16)
    expect_right(HOT_SET.variant("both_on_request"), pool, setting, stream)
