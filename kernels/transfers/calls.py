"""The ways of moving pieces as calls, in words that need no name of this project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .kinds import MEMORIES, memory_of, method_of

IN_WORDS: Final = {
    "loop": "one cudaMemcpyAsync per piece",
    "2d": "one cudaMemcpy2DAsync",
    "batch": "one cudaMemcpyBatchAsync for all pieces",
    "packed": "pack the pieces by one CPU thread, then one cudaMemcpyAsync",
    "list_packed_1": "pack the pieces by one CPU thread, then one cudaMemcpyAsync",
    "list_packed": "pack the pieces by all CPU threads, then one cudaMemcpyAsync",
    "graph": "a CUDA graph of copies, one after the other",
    "gather": "our copy kernel on all SMs",
    "gather_8": "our copy kernel with eight thread blocks",
    "bulk": "our kernel of bulk copies (TMA)",
}
"""Calls by method, the simplest first: calls of the driver, then code on the CPU, then kernels. One
without an entry for pieces of a list has that for rows of a matrix."""
OF_MEMORY: Final = {
    "pageable": "from pageable memory",
    "write_combined": "from write-combined memory",
    "registered": "from memory registered after allocation",
    "registered_huge": "from registered huge pages",
}


def in_words(variant: str) -> str:
    """The call of a variant in words, with its memory unless that is plain pinned memory."""
    memory = memory_of(variant)
    call = IN_WORDS.get(_method(variant), variant)
    return f"{call}, {OF_MEMORY[memory]}" if memory in OF_MEMORY else call


def simplest_first(variants: Iterable[str]) -> list[str]:
    """Ways in the order of IN_WORDS, equal calls in the order of their memory."""
    methods = [*IN_WORDS]

    def place(variant: str) -> tuple[int, int, str]:
        return methods.index(_method(variant)), MEMORIES.index(memory_of(variant)), variant

    return sorted(variants, key=place)


def _method(variant: str) -> str:
    """The key of a variant in IN_WORDS."""
    method = method_of(variant)
    return method if method in IN_WORDS else method.removeprefix("list_")
