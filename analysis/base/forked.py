"""Work that several processes share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

from analysis.base.processes import end_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")

_work: tuple[Callable[[Any], Any], Sequence[Any]]
"""Function and items of a forked process."""


def forked_map(
    function: Callable[[Item], Result], items: Iterable[Item], most: int | None = None
) -> list[Result]:
    """`function` of each of `items`, in their order, by forked processes: at most one for each CPU,
    and at most `most`.

    Only results are pickled, so `function` may be a lambda that refers to large tables. Processes
    take the items one after the other: the longest should come first. Raises the first error.
    """
    items = list(items)
    workers = min(len(items), cpus(), most or len(items))
    if workers < 2:
        return list(map(function, items))
    with ProcessPoolExecutor(workers, get_context("fork"), _begin, (function, items)) as pool:
        return list(pool.map(_result, range(len(items))))


def cpus() -> int:
    """Number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def _begin(function: Callable[[Any], Any], items: Sequence[Any]) -> None:
    global _work
    end_with_parent()
    _work = function, items


def _result(index: int) -> Any:
    function, items = _work
    return function(items[index])
