"""The study without a GPU: device memory is host memory, and kernels are in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.study import Case, CaseValue
from analysis.toolchain.modules import load_python
from kernels.common.arrays import bytes_at
from tests.kernels.cuda import install
from tests.repository import STUDIES

TRANSLATION = STUDIES["translation"]
WORKLOADS = load_python(TRANSLATION, "workload")
POOLS = load_python(TRANSLATION, "pools")
MIB = 2**20


class Reader:
    """The kernels as loops."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.firsts: list[int] = []

    def launch(
        self,
        pool: int,
        places: int,
        dst: int,
        stride: int,
        count: int,
        span: int,
        reads: int,
        read_vectors: int,
        first: int,
        stream: int,
    ) -> None:
        self.firsts.append(first)
        order = bytes_at(places, 4 * count).view(np.int32) if places else np.arange(count)
        size = 16 * read_vectors
        for i in range(reads):
            number = first + i
            start = int(order[number % count]) * stride * 16 + number // count % span * 128
            read = bytes_at(pool + start, size)
            if self.kernel == "rows":
                bytes_at(dst + i * size, size)[:] = read
            else:
                word = np.bitwise_xor.reduce(read.view(np.uint32))
                bytes_at(dst + 4 * i, 4).view(np.uint32)[:] = word


def fake_workload(monkeypatch: pytest.MonkeyPatch, pool_mib: int = 4) -> Any:
    """The study's workload, with all of its memory in plain host memory."""
    install(monkeypatch)
    monkeypatch.setattr(POOLS, "STEP", MIB)
    constants = {"pool_mib": pool_mib, "kinds_mib": pool_mib, "largest_bytes": 2 * MIB}
    return WORKLOADS.Workload(constants, np.random.default_rng(0))


def lines(
    count: int, stride_kib: int, reads: int, order: str = "random", read: int = 128, **more: str
) -> Case:
    placed: dict[str, CaseValue] = {"stride_kib": stride_kib, "count": count, "order": order}
    return Case({**placed, **more, "reads": reads}, reads * read, "default")


def rows(row_bytes: int, count: int, order: str = "random", pool_mib: int = 1) -> Case:
    placed: dict[str, CaseValue] = {"pool_mib": pool_mib, "row_bytes": row_bytes, "order": order}
    return Case({**placed, "rows": count}, count * row_bytes, "default")
