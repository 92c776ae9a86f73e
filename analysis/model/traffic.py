"""What reads of host memory put on the link: requests, sectors, bytes on the wire."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from analysis.model.access import Access

LINE_BYTES: Final = 128
"""An SM's largest request to host memory: one L1/L2 cache line (CUDA C++ Best Practices Guide,
"Coalesced Access to Global Memory")."""
SECTOR_BYTES: Final = 32
"""What a line is fetched in (same guide)."""
COPY_ENGINE_COMPLETION_BYTES: Final = 256
"""Data of one completion to the copy engine: the largest payload common on x86 root ports
(PCI Express Base Specification, Max_Payload_Size)."""
HEADER_BYTES: Final = 12
"""Header of a completion with data, three double words (PCI Express Base Specification, section
2.2.9). The hardware counters count it as read bytes."""
FRAMING_BYTES: Final = 8
"""Around a packet at 8 GT/s and above: 4 of STP with the sequence number, 4 of LCRC (same
specification, section 4.2.2). No counter sees them."""


@dataclass(frozen=True)
class Traffic:
    """What one operation reads: completions, the bytes of data in them, and both on the wire.

    Each request of an SM gets one completion. Averages over row starts, so not whole numbers.
    """

    completions: float
    data_bytes: float

    @property
    def wire_bytes(self) -> float:
        """Data, header and framing: what takes time on the link."""
        return self.data_bytes + self.completions * (HEADER_BYTES + FRAMING_BYTES)

    @property
    def counted_bytes(self) -> float:
        """Data and header: what the hardware counts as read from PCIe."""
        return self.data_bytes + self.completions * HEADER_BYTES

    @property
    def sectors(self) -> float:
        return self.data_bytes / SECTOR_BYTES


def line_requests(start: int, length: int) -> list[int]:
    """Bytes of each request that reading [start, start + length) makes: one a line it touches,
    each with the whole sectors touched in that line."""
    end = start + length
    sizes = []
    for line in range(start // LINE_BYTES * LINE_BYTES, end, LINE_BYTES):
        first = max(start, line) // SECTOR_BYTES
        last = (min(end, line + LINE_BYTES) - 1) // SECTOR_BYTES
        sizes.append((last - first + 1) * SECTOR_BYTES)
    return sizes


@lru_cache(maxsize=4096)
def row_traffic(row_bytes: int, stride_bytes: int, offset_bytes: int, access_bytes: int) -> Traffic:
    """Mean traffic of a row over the starts that rows have, `access_bytes` merged at a time."""
    starts = [
        (row * stride_bytes + offset_bytes) % LINE_BYTES
        for row in range(LINE_BYTES // math.gcd(stride_bytes, LINE_BYTES))
    ]
    counted: Counter[int] = Counter()
    for start in starts:
        for begin, length in _pieces(start, row_bytes, access_bytes):
            counted.update(line_requests(begin, length))
    data = sum(size * count for size, count in counted.items())
    return Traffic(counted.total() / len(starts), data / len(starts))


def _pieces(start: int, length: int, piece: int) -> Iterator[tuple[int, int]]:
    """[start, start + length) cut into pieces: (start, length) of each."""
    for done in range(0, length, piece):
        yield start + done, min(piece, length - done)


def traffic_of(access: Access) -> Traffic:
    """What one operation reads over the link.

    Every row counts as read from host memory: rows that meet in the L2 cache are not in the model.
    Loads of different threads' rows do not merge: each access is a request of its own.
    """
    if access.reads == "copy_engine":
        completions = math.ceil(access.payload_bytes / COPY_ENGINE_COMPLETION_BYTES)
        return Traffic(completions, access.payload_bytes)
    if access.reads == "contiguous":
        data = math.ceil(access.payload_bytes / SECTOR_BYTES) * SECTOR_BYTES
        return Traffic(math.ceil(access.payload_bytes / LINE_BYTES), data)
    merged = access.access_bytes if access.reads == "thread_rows" else access.row_bytes
    row = row_traffic(access.row_bytes, access.stride_bytes, access.offset_bytes, merged)
    return Traffic(row.completions * access.rows, row.data_bytes * access.rows)
