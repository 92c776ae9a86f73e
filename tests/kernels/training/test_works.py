"""The works, as far as they need no GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.toolchain.modules import load_python
from tests.repository import STUDIES

STUDY = STUDIES["training"]
WORKS = load_python(STUDY, "works")


def test_inputs_are_the_same_each_time() -> None:
    assert WORKS.orders(2, 10) == list(permutations(range(2)))
    ten = WORKS.orders(10, 10)
    assert ten == WORKS.orders(10, 10)
    assert len({tuple(order) for order in ten}) == 10
    assert all(sorted(order) == list(range(10)) for order in ten)
    lengths = WORKS.lengths(16, 32, 128, 1)
    assert lengths == WORKS.lengths(16, 32, 128, 1)
    assert len(set(lengths)) > 10 and all(32 <= length < 128 for length in lengths)
    assert all(length % 8 == 0 for length in WORKS.lengths(8, 128, 512, 8))


class Words(np.ndarray[Any, Any]):
    """Numbers with the methods of a tensor that an array lacks."""

    def fill_(self, value: int) -> None:
        self.fill(value)

    def numel(self) -> int:
        return self.size


class Replayed(WORKS.Graphs):  # type: ignore[name-defined,misc]
    """Graphs whose temporaries lie where the next one's result does, in the pools `dense`. Each
    replay writes a word beside them."""

    def __init__(self, graphs: int, dense: tuple[object, ...], *, writes: int = WORKS.Graphs.KEPT):
        self._graphs, self._dense, self._writes = graphs, dense, writes
        self._read = np.zeros(4, dtype=np.int64).view(Words)

    def _captures(self, pool: Any, captured: list[Any], kept: list[Any]) -> Iterator[None]:
        memory = [np.zeros_like(self._read) for _ in range(self._graphs + 1)]
        totals = [np.zeros(()) for _ in memory]
        kept += [np.full_like(self._read, self.KEPT)]

        def replay(number: int) -> None:
            if pool in self._dense:
                memory[number + 1].fill_(-2)
            memory[number][:] = self._read * (number + 2) + 1
            totals[number][...] = memory[number].sum()
            kept[0][1] = self._writes

        for n in range(self._graphs):
            graph = SimpleNamespace(replay=lambda n=n: replay(n))
            captured.append(WORKS.Captured(graph, n + 2, memory[n], totals[n]))
            yield


def test_graphs_that_share_memory_are_replayed_as_captured_and_wrong_ones_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuda = SimpleNamespace(graph_pool_handle=lambda: "shared", empty_cache=lambda: None)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda, full_like=np.full_like))
    timed = lambda steps, counting: WORKS.Times(1, 1, tuple(1 for _ in steps))  # noqa: E731
    monkeypatch.setattr(WORKS, "timed", timed)
    for graphs in (2, 10):
        times = WORKS.Times(2, 2, (1,) * 2 * graphs)
        assert Replayed(graphs, ("shared",)).run() == WORKS.Run([], times)
    said = "^graphs: {} results were wrong and {} words beside them had changed$"
    with pytest.raises(RuntimeError, match=said.format(2, 0)):
        Replayed(2, (None, "shared")).run()
    with pytest.raises(RuntimeError, match=said.format(0, 2)):
        Replayed(2, (), writes=0).run()
