"""Values in files of text: numbers, lines and timestamps, each read in one form only."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

MAX_NUMBER: Final = 1e18
"""Upper bound of all measured numbers, in any unit."""
UTC_TIME: Final = "a UTC timestamp such as 2026-11-24T06:00:00Z"
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)


def line_of_text(text: str) -> str:
    """`text` if it is one printable line; else ValueError."""
    if not text.isprintable():
        raise ValueError
    return text


def whole_number(text: str) -> int:
    """In decimal digits, within 64 bits; else ValueError."""
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ValueError
    return int(text)


def finite_number(text: str) -> float:
    """A number as Python writes it, at most MAX_NUMBER; else ValueError."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    is_lost = value == 0 and re.search("[1-9]", text.partition("e")[0])
    if is_lost or not abs(value) <= MAX_NUMBER:
        raise ValueError
    return value


def is_utc_time(text: str) -> bool:
    """Whether `text` is a valid timestamp such as `2026-01-02T03:04:05Z`."""
    try:
        return bool(_TIME.fullmatch(text) and datetime.fromisoformat(text))
    except ValueError:
        return False


FORMS: Final[dict[type, tuple[str, Callable[[str], object]]]] = {
    str: ("text on one line", line_of_text),
    int: ("a whole number", whole_number),
    float: (f"a number of at most {MAX_NUMBER:g}", finite_number),
}
"""Expected form of a value's text, and its reader."""
