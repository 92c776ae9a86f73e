"""Names of kernels in words of the source."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

import pycxxfilt

_KERNEL: Final = re.compile(
    r"(?:void )?(?:(?:\w+|\(anonymous namespace\))::)*(?P<name>\w+)(?P<arguments><\w+(?:, \w+)*>)?"
)
"""Kernels return void and are not members, so only namespaces precede the name."""


def kernel_name(symbol: str) -> str:
    """Short kernel name from a mangled one: copy_rows<4, Wide>.

    Template arguments are left out unless each is a number or one word. A name that is not mangled
    is returned unchanged.
    """
    with suppress(ValueError):  # it only begins like a mangled name
        if name := _KERNEL.match(pycxxfilt.itanium_demangle(symbol) or ""):
            return name["name"] + re.sub(r"\b(\d+)[ul]+\b", r"\1", name["arguments"] or "")
    return symbol
