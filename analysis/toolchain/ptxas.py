"""Registers, shared memory and spills of each kernel, from the output of ptxas -v."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.base.records import columns

_KERNEL = re.compile(
    r"Compiling entry function '(\S+)' for '(\S+)'\n.*\n"
    r"\s*(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads\n"
    r".*Used (\d+) registers(?:.*?(\d+) bytes smem)?"
)


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
    for kernel, arch, *counts in _KERNEL.findall(text):
        *stack, registers, shared = (int(count or 0) for count in counts)
        yield KernelResources(study, variant, arch, kernel, registers, shared, *stack)
