"""Registers, shared memory and spills of each kernel, from the output of ptxas -v."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.base.records import columns

_ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\S+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(?:.*?(\d+) bytes smem)?")


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
    kernel, arch, stack = "", "", [0, 0, 0]
    for line in text.splitlines():
        if entry := _ENTRY.search(line):
            kernel, arch = entry.groups()
        elif frame := _STACK.search(line):
            stack = [int(number) for number in frame.groups()]
        elif kernel and (used := _USED.search(line)):
            counts = int(used[1]), int(used[2] or 0)
            yield KernelResources(study, variant, arch, kernel, *counts, *stack)
            kernel = ""
