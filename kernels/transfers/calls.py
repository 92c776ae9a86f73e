"""The ways of moving pieces as calls, in words that need no name of this project."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from analysis.api.study import Study, Variant

from .kinds import memory_of, method_of
from .measured import is_kernel, ways

IN_WORDS: Final = {
    "loop": "one cudaMemcpyAsync per piece",
    "packed": "pack the pieces by one CPU thread, then one cudaMemcpyAsync",
    "list_packed": "pack the pieces by all CPU threads, then one cudaMemcpyAsync",
    "list_packed_1": "pack the pieces by one CPU thread, then one cudaMemcpyAsync",
    "2d": "one cudaMemcpy2DAsync",
    "batch": "one cudaMemcpyBatchAsync for all pieces",
    "graph": "a CUDA graph of copies, one after the other",
    "gather": "our copy kernel on all SMs",
    "gather_8": "our copy kernel with eight thread blocks",
    "bulk": "our kernel of bulk copies (TMA)",
}
"""Calls by method. One without an entry for pieces of a list has that for rows of a matrix."""
OF_MEMORY: Final = {
    "pageable": "from pageable memory",
    "write_combined": "from write-combined memory",
    "registered": "from memory registered after allocation",
    "registered_huge": "from registered huge pages",
}
_HEADER: Final = re.compile(r'^#include "([\w./]+\.h)"$', re.MULTILINE)


def in_words(variant: str) -> str:
    """The call of a variant in words, with its memory unless that is plain pinned memory."""
    memory = memory_of(variant)
    method = method_of(variant)
    call = IN_WORDS.get(method) or IN_WORDS.get(method.removeprefix("list_"), variant)
    return f"{call}, {OF_MEMORY[memory]}" if memory in OF_MEMORY else call


def calls_of(study: Study, variants: Collection[str]) -> Mapping[str, Mapping[str, Any]]:
    """Of these ways the call in `words`; of a kernel also its `source`."""
    return {
        variant.name: {
            "words": in_words(variant.name),
            **({"source": source_of(variant)} if is_kernel(variant) else {}),
        }
        for variant in ways(study)
        if variant.name in variants
    }


def source_of(variant: Variant) -> str:
    """The file of a kernel, after the header that has the kernel, if it is in one."""
    text = variant.path.read_text()
    headers = [(variant.path.parent / name).read_text() for name in _HEADER.findall(text)]
    return "\n".join([*(header for header in headers if "__global__" in header), text])
