"""The study of the method: the writer of a copy's source, and the cores that it uses."""

import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.measure.cell import Skip
from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["method"]
METHOD: Any = load_python(STUDY, "workload")


def test_every_writer_keeps_the_bytes_and_the_cores_of_this_thread() -> None:
    allowed = os.sched_getaffinity(0)
    src = np.random.default_rng(1).integers(0, 256, 5000, np.uint8)
    before = src.copy()
    for writer in (METHOD.NOBODY, METHOD.THIS_THREAD, METHOD.OTHER_CORE):
        METHOD.write_and_rest(src, writer, 0)
        assert np.array_equal(src, before) and os.sched_getaffinity(0) == allowed


def test_the_other_core_is_not_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHOD.os, "sched_getaffinity", lambda _: {3, 5, 7})
    for here, other in ((3, 5), (5, 3), (7, 3)):
        libc = SimpleNamespace(sched_getcpu=lambda here=here: here)
        monkeypatch.setattr(METHOD.ctypes, "CDLL", lambda _, libc=libc: libc)
        assert METHOD.other_core() == other
    monkeypatch.setattr(METHOD.os, "sched_getaffinity", lambda _: {4})
    workload = METHOD.Workload({"writer": METHOD.OTHER_CORE}, np.random.default_rng(0))
    with pytest.raises(Skip, match="here is only one"):
        workload.prepare(STUDY.variants[0].cases[0])
