"""A gather on the CPU into pinned staging memory by threads that are each pinned to another core,
then one non-blocking copy."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

TEAM_START = 2**22
"""Elements of an operation that PyTorch divides among all its threads."""


class PinnedTeam:
    """A thread and its team of OpenMP threads, each pinned to a core.

    OpenMP keeps a team for every thread that starts parallel work. So neither the measuring thread
    nor the team that works for other variants is pinned.
    """

    def __init__(self) -> None:
        self._leader = ThreadPoolExecutor(1)
        self.run(self._start)

    def run(self, work: Callable[[], object]) -> None:
        """Do the work on the team; return when it is done."""
        self._leader.submit(work).result()

    @staticmethod
    def _start() -> None:
        cores = sorted(os.sched_getaffinity(0))
        before = _threads()
        torch.zeros(TEAM_START).add_(1)
        helpers = sorted(_threads() - before)
        for number, thread in enumerate([0, *helpers]):  # 0 is the calling thread
            os.sched_setaffinity(thread, {cores[number % len(cores)]})


def _threads() -> set[int]:
    """Ids of the threads of this process."""
    return {int(path.name) for path in Path("/proc/self/task").iterdir()}


@cache
def team() -> PinnedTeam:
    """The team of this process."""
    return PinnedTeam()


class Bound:
    """One gather; `launch` returns once the copy is enqueued."""

    def __init__(self, src: np.ndarray, dst: Any, pairs: Any) -> None:
        self._src = torch.from_numpy(src)
        self._dst = torch.as_tensor(dst, device="cuda")
        self._pairs = torch.as_tensor(pairs, device="cuda").view(-1, 2)
        rows = self._pairs.shape[0]
        self._staging = torch.empty((rows, src.shape[1]), dtype=torch.uint8, pin_memory=True)
        self.row_bytes = src.shape[1]
        self._team = team()
        expected = torch.arange(rows, dtype=torch.int32, device="cuda")
        if not torch.equal(self._pairs[:, 1], expected):
            raise ValueError(
                "pairs: expected destination rows 0, 1, 2 ... for one copy, got others"
            )

    def launch(self, stream: int) -> None:
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            rows = self._pairs[:, 0].cpu()
            self._team.run(lambda: torch.index_select(self._src, 0, rows, out=self._staging))
            self._dst[: len(rows)].copy_(self._staging, non_blocking=True)


def bind(src: np.ndarray, dst: Any, pairs: Any, sm_launches: Any = None) -> Bound:
    """Like bindings.cpp: src uint8 [cpu_slots, token_bytes] pinned, dst and pairs in GPU memory.

    ValueError if the destination rows are not 0, 1, 2 ...
    """
    return Bound(src, dst, pairs)
