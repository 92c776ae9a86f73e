"""The one error a person sees: which field, what was expected, what came."""

from __future__ import annotations


class HotpathError(Exception):
    """Something a person can mend; printed as one line, without a traceback."""


class FieldError(HotpathError):
    """Bad input in a named field."""

    def __init__(self, field: str, expected: str, got: object) -> None:
        super().__init__(f"{field}: expected {expected}, got {got!r}")
        self.field = field
