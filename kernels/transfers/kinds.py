"""The kind of memory and the way of moving pieces, parsed from a variant's name."""

from __future__ import annotations

from typing import Final

MEMORIES: Final = ("pageable", "pinned", "write_combined", "registered", "registered_huge")
"""Memory that a program may keep its data in; managed memory is separate."""


def memory_of(variant: str) -> str:
    """The kind of memory of a variant; empty if its name contains none."""
    kinds = (kind for kind in (*MEMORIES, "managed") if variant.startswith(f"{kind}_"))
    return max(kinds, key=len, default="")  # registered is a prefix of registered_huge


def method_of(variant: str) -> str:
    """The way in which the variant moves pieces."""
    return variant.removeprefix(f"{memory_of(variant)}_")
