"""Names of kernels in words of the source."""

from __future__ import annotations

import re
from typing import Final

import pycxxfilt

_KERNEL: Final = re.compile(
    r"(?:void )?(?:(?:\w+|\(anonymous namespace\))::)*(?P<name>\w+)(?P<arguments><\w+(?:, \w+)*>)?"
)
"""Kernels return void and are not members, so only namespaces precede the name."""
_LITERAL: Final = re.compile(r"\b(\d+)[ul]+\b")


def kernel_name(symbol: str) -> str:
    """Short kernel name from a mangled one: copy_rows<4, Wide>.

    Template arguments are left out unless each is a number or one word. A name that is not mangled
    is returned unchanged.
    """
    try:
        demangled = pycxxfilt.itanium_demangle(symbol)
    except ValueError:  # it only begins like a mangled name
        return symbol
    name = _KERNEL.match(demangled or "")
    if name is None:
        return symbol
    return name["name"] + _LITERAL.sub(r"\1", name["arguments"] or "")
