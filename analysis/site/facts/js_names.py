"""Names that every JavaScript object has. Vega groups rows in plain objects: for a machine or a
kernel with such a name, it would find a function in place of the group."""

from __future__ import annotations

import re
from typing import Any, Final

NAMES: Final = (
    *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable"),
    *("toLocaleString", "toString", "valueOf", "__proto__"),
    *("__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__"),
)
MARK: Final = "\u200b"
"""Without width; after such a name, it makes another one."""
_QUOTED: Final = re.compile(rf"""(["'])({"|".join(NAMES)})(?=\1)""")


def marked(value: Any) -> Any:
    """A value of a chart's data or specification with such names marked: as a whole text, as a key,
    and in quotes within an expression."""
    match value:
        case str():
            return value + MARK if value in NAMES else _QUOTED.sub(rf"\1\2{MARK}", value)
        case dict():
            return {marked(key): marked(one) for key, one in value.items()}
        case list() | tuple():
            return [marked(one) for one in value]
    return value
