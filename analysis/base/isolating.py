"""Finds what a computation fails with, so that the rest can go on without it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

from analysis.base.errors import HotpathError

T = TypeVar("T")


class UnforeseenError(HotpathError):
    """One of UNFORESEEN, and where it came from, in one line."""


UNFORESEEN: Final = (
    *(ArithmeticError, AssertionError, LookupError, TypeError, ValueError),
    UnforeseenError,
)
"""Errors of a computation whose input no check has refused."""


def error_of(compute: Callable[[], object]) -> Exception | None:
    """The UNFORESEEN error of a computation, None if it works."""
    try:
        compute()
    except UNFORESEEN as error:
        return error
    return None


def culprit(items: Sequence[T], works_without: Callable[[Collection[T]], bool]) -> T | None:
    """The one of `items` without which a computation works; None if there is no such one."""
    return next((one for one in items if works_without([one])), None)


def in_words(error: Exception) -> str:
    """An error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
