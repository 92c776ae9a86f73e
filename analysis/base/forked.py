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

_work: tuple[Callable[[Any], Any], list[Any]]
"""The function and the items, in a forked process."""


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
    with ProcessPoolExecutor(workers, get_context("fork"), _begin, (function, items)) as pool:
        return list(pool.map(_run, range(len(items))))


def _begin(*work: Any) -> None:
    global _work
    end_with_parent()
    _work = work


def _run(index: int) -> Any:
    function, items = _work
    return function(items[index])
