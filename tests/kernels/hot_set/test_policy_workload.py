"""The workload that simulates policies: it needs no GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.study import Case
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["hot_set"]
WORKLOAD, POLICIES = (load_python(STUDY, name) for name in ("policy_workload", "policies"))
CASE = Case({"topk": 64, "slots": 128, "trace": "kept_0.8"}, 0, "default")


def bound(policy: str, module: Any = POLICIES) -> Any:
    inputs = WORKLOAD.Workload(STUDY.constants, np.random.default_rng(0)).prepare(CASE)
    return inputs.bind(STUDY.variant(f"policy_{policy}"), module)


class Wrong:
    """A policy that leaves out the last rows of a trace, or fetches too few of them."""

    def __init__(self, steps: slice, share: float) -> None:
        self._steps, self._share = steps, share

    def fetched_rows(self, *arguments: Any) -> np.ndarray:
        fetched: np.ndarray = POLICIES.fetched_rows(*arguments)
        return fetched[self._steps] * self._share


@pytest.mark.parametrize("policy", POLICIES.POLICIES)
def test_each_policy_has_a_variant_that_passes_and_reports_bytes(policy: str) -> None:
    operation = bound(policy)
    operation.poison()
    assert operation.check() == "steps: expected 202, got 0"
    operation.launch(0)
    assert operation.check() is None
    (fetched,) = operation.own_samples(0, 3)["fetched"]
    assert 0 < fetched < 0.2 * 64 * STUDY.constants["token_bytes"]


def test_a_policy_that_fetches_fewer_rows_than_the_optimum_is_wrong() -> None:
    operation = bound("belady", Wrong(slice(None), 0.9))
    operation.launch(0)
    assert "rows fetched: expected at least" in operation.check()
    operation = bound("lru", Wrong(slice(-1), 1))
    operation.launch(0)
    assert operation.check() == "steps: expected 202, got 201"


def test_a_case_without_a_trace_is_an_error() -> None:
    workload = WORKLOAD.Workload(STUDY.constants, np.random.default_rng(0))
    with pytest.raises(FieldError, match=r"^trace: expected misses_N"):
        workload.prepare(Case({"topk": 64, "slots": 128, "trace": "newest"}, 0, "default"))
