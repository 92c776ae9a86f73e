"""What the name of a variant says: a kind of memory, and a way of moving pieces."""

from __future__ import annotations

from typing import Final

MEMORIES: Final = ("pageable", "pinned", "write_combined", "registered", "registered_huge")
"""Memory a program may well keep its data in; managed memory stands for itself."""


def memory_of(variant: str) -> str:
    """The kind of memory a variant of the study is about; empty where its name tells none."""
    kinds = (kind for kind in (*MEMORIES, "managed") if variant.startswith(f"{kind}_"))
    return max(kinds, key=len, default="")  # registered_huge begins as registered does


def method_of(variant: str) -> str:
    """How the variant moves pieces."""
    return variant.removeprefix(f"{memory_of(variant)}_")
