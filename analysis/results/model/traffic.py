"""The traffic that reads of host memory cause on the link: requests, sectors, bytes on the wire."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from analysis.study.access import Access

LINE_BYTES: Final = 128
"""An SM's largest request: one cache line (CUDA C++ Best Practices Guide, "Coalesced Access")."""
SECTOR_BYTES: Final = 32
"""The granularity in which a line is fetched (same guide)."""
HOST_LINE_BYTES: Final = 64
"""A cache line of x86 processors."""
LOAD_BYTES: Final = 512
"""The most that a warp can load with one instruction: 16 bytes per lane (PTX ISA, "ld")."""
COPY_ENGINE_COMPLETION_BYTES: Final = 256
"""Data of one completion to the copy engine: the usual Max_Payload_Size of x86 root ports."""
HEADER_BYTES: Final = 12
"""Header of a completion with data (PCI Express Base Specification, section 2.2.9)."""
FRAMING_BYTES: Final = 8
"""Framing of a packet from 8 GT/s on: STP and LCRC (same specification, section 4.2.2)."""


@dataclass(frozen=True)
class Traffic:
    """The reads of one operation, on average over row starts: the number of completions, one for
    each request of an SM, and the data bytes in them. `half_lines` counts the host lines of which a
    request needs only one sector."""

    completions: float
    data_bytes: float
    half_lines: float = 0.0

    @property
    def wire_bytes(self) -> float:
        """Data, headers and framing: everything that takes time on the link."""
        return self.data_bytes + self.completions * (HEADER_BYTES + FRAMING_BYTES)


_LINE_SECTORS: Final = LINE_BYTES // SECTOR_BYTES
_HOST_SECTORS: Final = HOST_LINE_BYTES // SECTOR_BYTES


def row_requests(start: int, length: int, load_bytes: int, *, alone: bool = False) -> list[range]:
    """The sectors of each request of a warp that reads [start, start + length), `load_bytes` per
    instruction: one request per instruction and line, of the whole sectors touched in the line.

    A line that two instructions share is requested twice, a shared sector once, or twice if a
    thread reads the row `alone`. The last instruction comes first, as in the calibration's kernel.
    """
    requests: list[range] = []
    known_from: float = math.inf
    for begin in reversed(range(start, start + length, load_bytes)):
        last_byte = min(begin + load_bytes, start + length) - 1
        first, end = begin // SECTOR_BYTES, last_byte // SECTOR_BYTES + 1
        end = int(min(end, known_from))
        while first < end:
            line_end = (first // _LINE_SECTORS + 1) * _LINE_SECTORS
            requests.append(range(first, min(line_end, end)))
            first = line_end
        known_from = math.inf if alone else begin // SECTOR_BYTES
    return requests


@lru_cache(maxsize=4096)
def row_traffic(
    row_bytes: int,
    stride_bytes: int,
    offset_bytes: int,
    access_bytes: int,
    in_flight_bytes: int,
    alone: bool = False,
) -> Traffic:
    """Mean traffic of a row, read `access_bytes` at a time, over all alignments of row starts.

    A warp reads the row, or with `alone` a single thread. If a warp has the whole row in flight,
    instructions that share a line request it once.
    """
    starts = [
        (row * stride_bytes + offset_bytes) % LINE_BYTES
        for row in range(LINE_BYTES // math.gcd(stride_bytes, LINE_BYTES))
    ]
    at_once = row_bytes if in_flight_bytes >= row_bytes and not alone else access_bytes
    requests = [r for start in starts for r in row_requests(start, row_bytes, at_once, alone=alone)]
    return Traffic(
        completions=len(requests) / len(starts),
        data_bytes=sum(map(len, requests)) * SECTOR_BYTES / len(starts),
        half_lines=sum(r.start % _HOST_SECTORS + r.stop % _HOST_SECTORS for r in requests)
        / len(starts),
    )


def traffic_of(access: Access) -> Traffic:
    """The traffic of one operation on the link, without hits in the L2 cache."""
    if access.reads == "copy_engine":
        completions = math.ceil(access.payload_bytes / COPY_ENGINE_COMPLETION_BYTES)
        return Traffic(completions, access.payload_bytes)
    if access.reads == "contiguous":
        load = row_traffic(LOAD_BYTES, access.stride_bytes or LOAD_BYTES, 0, LOAD_BYTES, LOAD_BYTES)
        data = math.ceil(access.payload_bytes / SECTOR_BYTES) * SECTOR_BYTES
        return Traffic(math.ceil(access.payload_bytes / LOAD_BYTES * load.completions), data)
    row = row_traffic(
        access.row_bytes,
        access.stride_bytes,
        access.offset_bytes,
        access.access_bytes or LOAD_BYTES,
        access.in_flight_bytes,
        alone=access.reads == "thread_rows",
    )
    # Rows without a gap share the sector at their seam and the host line: what the first one leaves
    # of them is asked for at about the same time.
    ends = 1 / access.run_rows if access.stride_bytes == access.row_bytes else 1
    row_data = ends * row.data_bytes + (1 - ends) * access.row_bytes
    return Traffic(
        row.completions * access.rows, row_data * access.rows, ends * row.half_lines * access.rows
    )
