"""Errors that a person can mend, and unforeseen ones without whose cause a computation goes on."""

import errno
from collections.abc import Callable, Collection, Sequence
from typing import Final

MAX_SHOWN: Final = 500
_REMEDIES: Final = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room, then run the same command again"),
    **dict.fromkeys((errno.EROFS, errno.EACCES), "use a copy that you can write to"),
    **dict.fromkeys((errno.ENOTDIR, errno.EISDIR), "name another path"),
}


class HotpathError(Exception):
    """Something a person can mend; printed as one line, without a traceback."""


class FieldError(HotpathError):
    """Bad input in a named field."""

    def __init__(self, field: str, expected: str, got: object) -> None:
        super().__init__(field, expected, got)  # its arguments, with which pickle makes it anew
        self.field = field

    def __str__(self) -> str:
        field, expected, got = self.args
        return f"{field}: expected {expected}, got {shown(got)}"


def shown(got: object) -> str:
    """A value in an error message, cut after MAX_SHOWN characters."""
    try:
        text = repr(got)
    except ValueError:
        return "a longer number"  # of thousands of digits
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def visible(text: str) -> str:
    """Foreign `text` for a log or a page: one line, printable, at most MAX_SHOWN characters."""
    escaped = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return escaped if len(escaped) <= MAX_SHOWN else f"{escaped[:MAX_SHOWN]} ..."


def require_known(field: str, got: str, known: Collection[str]) -> None:
    """FieldError unless `got` is one of `known`, which the error lists in their order."""
    if got not in known:
        raise FieldError(field, f"one of {list(known)}", got)


def refuse_repeats(field: str, items: Sequence[str]) -> None:
    """FieldError for an item that `items` has twice."""
    if len(set(items)) < len(items):
        raise FieldError(field, "every entry once", max(items, key=items.count))


def os_error_message(error: OSError) -> str | None:
    """The file, its fault and a remedy; None if no remedy is known."""
    if (remedy := _REMEDIES.get(error.errno or 0)) is None:
        return None
    return f"{error.filename}: " * bool(error.filename) + f"{error.strerror}; {remedy}"


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


def in_words(error: Exception) -> str:
    """An error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
