"""Kernels by the assembler: names, and registers, shared memory and spills from ptxas -v."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import pycxxfilt

from analysis.base.records import columns

_REPORT: Final = re.compile(
    r"Compiling entry function '(\S+)' for '(\S+)'\n.*\n"
    r"\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
    r".*Used (\d+) registers(?:.*?(\d+) bytes smem)?"
)
_NAME: Final = re.compile(
    r"(?:void )?(?:(?:\w+|\(anonymous namespace\))::)*(?P<name>\w+)(?P<arguments><\w+(?:, \w+)*>)?"
)
"""Kernels return void and are not members, so only namespaces precede the name."""


@dataclass(frozen=True)
class KernelResources:
    """Resources of one kernel: a thread's registers, stack and spills, a block's shared memory."""

    study: str
    variant: str
    arch: str
    kernel: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int


COLUMNS = columns(KernelResources)


def parse_ptxas(text: str, study: str, variant: str) -> Iterator[KernelResources]:
    """Every kernel in `text`, the output of `ptxas -v`; shared memory is the static part."""
    for kernel, arch, *counts in _REPORT.findall(text):
        *stack, registers, shared = (int(count or 0) for count in counts)
        yield KernelResources(study, variant, arch, kernel, registers, shared, *stack)


def kernel_name(symbol: str) -> str:
    """Short kernel name from a mangled one: copy_rows<4, Wide>.

    Template arguments are left out unless each is a number or one word. A name that is not mangled
    is returned unchanged.
    """
    with suppress(ValueError):  # it only begins like a mangled name
        if name := _NAME.match(pycxxfilt.itanium_demangle(symbol) or ""):
            return name["name"] + re.sub(r"\b(\d+)[ul]+\b", r"\1", name["arguments"] or "")
    return symbol
