"""The write-up's phase 3, in Python: from 1 MiB, blocks split from segments of 1 GiB."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

ALIGNMENT = 512
MAX_CACHED = 2**30
MIN_BLOCK = 2**20
SEGMENT = 2**30


def bucket(nbytes: int) -> int:
    """The size of the block for a small request."""
    return max(ALIGNMENT, 1 << (nbytes - 1).bit_length())


@dataclass(eq=False)
class Block:
    """A piece of a segment."""

    pointer: int
    size: int
    segment: list[Block]
    is_free: bool = True


class Memory:
    """A memory manager over `driver`, which allocates bytes and frees pointers."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        self._live: dict[int, int] = {}
        self._cached = 0
        self._segments: list[list[Block]] = []
        self._blocks: dict[int, Block] = {}

    def allocate(self, nbytes: int) -> int:
        if nbytes >= MIN_BLOCK:
            return self._cut(-(-nbytes // ALIGNMENT) * ALIGNMENT)
        size = bucket(nbytes)
        if self._free[size]:
            pointer = self._free[size].pop()
            self._cached -= size
        else:
            pointer = self._driver.allocate(size)
        self._live[pointer] = size
        return pointer

    def free(self, pointer: int) -> None:
        if pointer in self._blocks:
            self._coalesce(self._blocks.pop(pointer))
            return
        size = self._live.pop(pointer)
        if self._cached + size <= MAX_CACHED:
            self._free[size].append(pointer)
            self._cached += size
        else:
            self._driver.free(pointer)

    def _cut(self, size: int) -> int:
        """Split the best fit of all segments, or a new segment if nothing fits; its pointer."""
        fits = (
            block
            for segment in self._segments
            for block in segment
            if block.is_free and block.size >= size
        )
        block = min(fits, key=lambda block: block.size, default=None)
        if block is None:
            segment: list[Block] = []
            room = max(size, SEGMENT)
            block = Block(self._driver.allocate(room), room, segment)
            segment.append(block)
            self._segments.append(segment)
        if block.size > size:
            rest = Block(block.pointer + size, block.size - size, block.segment)
            block.segment.insert(block.segment.index(block) + 1, rest)
            block.size = size
        block.is_free = False
        self._blocks[block.pointer] = block
        return block.pointer

    def _coalesce(self, block: Block) -> None:
        """Free a block and merge it with its free neighbours."""
        block.is_free = True
        segment = block.segment
        i = segment.index(block)
        if i + 1 < len(segment) and segment[i + 1].is_free:
            block.size += segment.pop(i + 1).size
        if i > 0 and segment[i - 1].is_free:
            segment[i - 1].size += segment.pop(i).size

    def __del__(self) -> None:
        for segment in self._segments:
            self._driver.free(segment[0].pointer)
        for pointers in self._free.values():
            for pointer in pointers:
                self._driver.free(pointer)
