"""The study of the method: the writer of a copy's source, and the cores that it uses."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import FieldError
from analysis.measure.cell import Skip
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["method"]
METHOD: Any = load_python(STUDY, "workload")


@pytest.mark.parametrize("writer", [0, 5])
def test_an_unknown_writer_is_rejected(writer: int) -> None:
    with pytest.raises(FieldError, match=rf"constants\.writer: expected 1 to 4, got {writer}"):
        METHOD.Workload({"writer": writer}, np.random.default_rng(0))


@pytest.mark.parametrize("writer", [METHOD.NOBODY, METHOD.THIS_THREAD, METHOD.OTHER_CORE])
def test_every_writer_keeps_the_bytes_and_the_cores_of_this_thread(
    writer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written_on: list[set[int]] = []
    add = np.add

    def noting_add(*arguments: Any, **more: Any) -> Any:
        written_on.append(os.sched_getaffinity(0))
        return add(*arguments, **more)

    monkeypatch.setattr(METHOD.np, "add", noting_add)
    allowed = os.sched_getaffinity(0)
    src = np.random.default_rng(1).integers(0, 256, 5000, np.uint8)
    before = src.copy()
    METHOD.write_and_rest(src, writer, 0)
    assert np.array_equal(src, before)
    assert os.sched_getaffinity(0) == allowed
    expected = {METHOD.NOBODY: [], METHOD.THIS_THREAD: [allowed]}
    if writer == METHOD.OTHER_CORE:
        ((core,),) = written_on
        assert core in allowed
    else:
        assert written_on == expected[writer]


def test_a_single_core_skips_the_case_of_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHOD.os, "sched_getaffinity", lambda _: {4})
    workload = METHOD.Workload({"writer": METHOD.OTHER_CORE}, np.random.default_rng(0))
    with pytest.raises(Skip, match="here is only one"):
        workload.prepare(STUDY.variants[0].cases[0])


def test_the_other_core_is_not_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHOD.os, "sched_getaffinity", lambda _: {3, 5, 7})
    for here, other in ((3, 5), (5, 3), (7, 3)):
        monkeypatch.setattr(METHOD.ctypes, "CDLL", lambda _, here=here: Cores(here))
        assert METHOD.other_core() == other


class Cores:
    def __init__(self, here: int) -> None:
        self._here = here

    def sched_getcpu(self) -> int:
        return self._here


def test_copies_that_are_compared_differ_only_in_their_writer() -> None:
    names = ("copy_from_memory", "copy_written_here", "copy_written_elsewhere")
    variants = [STUDY.variant(name) for name in names]
    assert [variant.constants["writer"] for variant in variants] == [
        METHOD.NOBODY,
        METHOD.THIS_THREAD,
        METHOD.OTHER_CORE,
    ]
    assert len({(variant.path, variant.flags, variant.cases) for variant in variants}) == 1
