"""Kinds of memory and work on the data, which transfers add to moves of pieces."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.base.errors import FieldError
from analysis.measure.cell import PythonLauncher, Skip
from kernels.common import host_memory
from kernels.common.moves import workload as pieces
from kernels.transfers.kinds import memory_of
from tests.kernels.cuda import outcome
from tests.kernels.moves import move, python_module
from tests.kernels.transfers.fake import TRANSFERS, WORK


def test_an_unknown_direction_is_an_error(workload: Any) -> None:
    workload.prepare(move(1, 1, "up"))
    with pytest.raises(FieldError, match="round_trip"):
        workload.bind(TRANSFERS.variant("pinned_loop"), python_module())


def test_a_stream_with_pageable_copies_is_not_held(workload: Any) -> None:
    workload.prepare(move(16, 1, "h2d"))
    operation = workload.bind(TRANSFERS.variant("pageable_loop"), python_module())
    assert operation.waits is True


def test_no_huge_pages_skips_the_case(workload: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(kind: str, size: int) -> None:
        raise host_memory.NoHugePages("none")

    monkeypatch.setattr(pieces, "HostMemory", refuse)
    workload.prepare(move(16, 1, "h2d"))
    with pytest.raises(Skip, match="none"):
        workload.bind(TRANSFERS.variant("registered_huge_loop"), python_module())


def test_a_tensor_moves_other_bytes_and_leaves_the_pieces_to_the_next_variant(
    workload: Any,
) -> None:
    class Tensor:
        """Copies when it is launched."""

        output: Any = None

        def __init__(self, source: np.ndarray) -> None:
            self._source = source

        def launch(self, stream: int) -> None:
            host = self._source.copy()
            self.output = SimpleNamespace(
                cpu=lambda: SimpleNamespace(numpy=lambda: host),
                fill_=lambda byte: SimpleNamespace(cpu=lambda: None),
            )

    workload.prepare(move(64, 1, "h2d"))
    source = workload.source("pageable", "there").bytes[4096 : 4096 + 64]
    module = SimpleNamespace(bind=lambda *_, **__: Tensor(source))
    operation = workload.bind(TRANSFERS.variant("pageable_torch_to"), module)
    assert isinstance(operation.launcher, PythonLauncher)
    assert outcome(operation) is None
    assert (source != workload.payload("there")).any()
    assert outcome(workload.bind(TRANSFERS.variant("pageable_loop"), python_module())) is None


@given(words=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8), rounds=st.integers(0, 9))
def test_work_is_its_rounds_one_by_one(words: list[int], rounds: int) -> None:
    payload = np.array(words, np.uint32).view(np.uint8)
    expected = words
    for _ in range(rounds):
        expected = [(w * WORK.FACTOR + WORK.TERM) % 2**32 for w in expected]
    assert WORK.worked_on(payload, rounds).view(np.uint32).tolist() == expected


def test_the_work_is_the_same_on_both_sides() -> None:
    for header in ("round_trip.h", "step.h"):
        text = (TRANSFERS.folder / header).read_text()
        constants = dict(re.findall(r"constexpr uint32_t (k\w+) = (\d+);", text))
        assert constants == {"kFactor": str(WORK.FACTOR), "kTerm": str(WORK.TERM)}


def test_variants_are_named_after_their_memory() -> None:
    for variant in TRANSFERS.variants:
        assert memory_of(variant.name)
        assert variant.options.get("memory", memory_of(variant.name)) == memory_of(variant.name)


def test_a_file_for_any_memory_gets_that_of_the_variants_name(workload: Any) -> None:
    workload.prepare(move(16, 1, "d2h"))
    for kind in ("pinned", "pageable"):
        operation = workload.bind(TRANSFERS.variant(f"{kind}_profiled"), python_module())
        assert operation.targets[0].memory.kind == kind
        assert outcome(operation) is None
