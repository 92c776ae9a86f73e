"""A parallel map over forked processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

from analysis.base.limits import allowed_cores
from analysis.base.processes import end_with_parent

Item = TypeVar("Item")
Result = TypeVar("Result")

_result: Callable[[int], Any]
"""The result of an item by its index, in a forked process."""


def forked_map(
    function: Callable[[Item], Result], items: Iterable[Item], max_processes: int | None = None
) -> list[Result]:
    """Apply `function` to each item in forked processes, and return the results in the order of the
    items. Uses at most one process for each allowed core, and at most `max_processes`.

    Only results are pickled, so `function` may be a lambda that refers to large tables. Processes
    take the items one after the other, so put the slowest first. Raises the first error.
    """
    items = list(items)
    workers = min(len(items), allowed_cores(), max_processes or len(items))
    if workers < 2:
        return list(map(function, items))
    of_index = (lambda index: function(items[index]),)
    with ProcessPoolExecutor(workers, get_context("fork"), _begin, of_index) as pool:
        return list(pool.map(_run, range(len(items))))


def _begin(of_index: Callable[[int], Any]) -> None:
    global _result
    end_with_parent()
    _result = of_index


def _run(index: int) -> Any:
    return _result(index)
