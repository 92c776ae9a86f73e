"""Drawings of the read of a row: its loads over lines and sectors, and its completions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Canvas, Drawing
from analysis.api.model import (
    COPY_ENGINE_COMPLETION_BYTES,
    FRAMING_BYTES,
    HEADER_BYTES,
    LINE_BYTES,
    LOAD_BYTES,
    SECTOR_BYTES,
    Request,
    thread_requests,
    warp_requests,
)
from analysis.api.quantities import percent, whole
from analysis.api.study import Access, Study, access_of

ROW: Final = 3
"""The drawn row. As for most rows, the two loads of a warp request one of its lines twice."""
STEPS: Final = ("v0_byte_copy", "v1_vectorized", "v2_warp_per_token", "v3_loads_first")
"""Steps that read a row differently; later steps differ in their launch."""
REQUEST_BYTES: Final = 16 + FRAMING_BYTES
"""A read request on the wire: four double words for a 64-bit address, no data (PCI Express Base
Specification, section 2.2.7)."""
OVERHEAD_BYTES: Final = HEADER_BYTES + FRAMING_BYTES


@dataclass(frozen=True)
class RowRead:
    """A variant's read of the row; positions are bytes from the line in which the row starts."""

    name: str
    access: Access
    start: int

    @property
    def is_alone(self) -> bool:
        """Whether one thread reads the whole row."""
        return self.access.reads == "thread_rows"

    @property
    def end(self) -> int:
        return self.start + self.access.row_bytes

    @property
    def loads(self) -> list[tuple[int, int]]:
        """First byte and end of each load instruction."""
        bytes_ = self.access.access_bytes if self.is_alone else LOAD_BYTES
        return [(at, min(at + bytes_, self.end)) for at in range(self.start, self.end, bytes_)]

    @property
    def requests(self) -> list[Request]:
        row = self.access.row_bytes
        if self.is_alone:
            return thread_requests(self.start, row, self.access.access_bytes)
        at_once = row if self.access.in_flight_bytes >= row else LOAD_BYTES
        return sorted(warp_requests(self.start, row, at_once), key=lambda request: request.first)

    @property
    def lines(self) -> int:
        return -(-self.end // LINE_BYTES)


def row_read(study: Study, name: str) -> RowRead:
    """The variant's read of row ROW."""
    variant = study.variant(name)
    access = access_of(variant, study.shown_case(variant))
    assert access is not None, f"study.yaml says how {name} reads"
    return RowRead(name, access, ROW * access.stride_bytes % LINE_BYTES)


def drawings(facts: StudyFacts) -> dict[str, Drawing]:
    """`lines`: loads and requests of a row; `wire`: its packets on the link."""
    steps = [row_read(facts.study, name) for name in STEPS]
    row = whole(steps[0].access.row_bytes)
    return {
        "lines": Drawing(
            f"One row of {row} bytes over lines and sectors, as each step reads it",
            _told(steps),
            lambda canvas: _draw_reads(canvas, steps),
        ),
        "wire": Drawing(
            f"What crosses the link for one row of {row} bytes, to scale",
            " ".join(
                f"{name}: {_wire_words(packets, row_bytes)}."
                for name, packets, row_bytes in _wires(steps)
            ),
            lambda canvas: _draw_wires(canvas, _wires(steps)),
        ),
    }


def _told(reads: Sequence[RowRead]) -> str:
    return " ".join(f"{read.name}: {_words(read)}; {_in_flight(read)}." for read in reads)


def _words(read: RowRead) -> str:
    return f"{_count(len(read.loads), 'load')}, {_count(len(read.requests), 'request')}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _in_flight(read: RowRead) -> str:
    if read.is_alone:
        threads = read.access.in_flight_bytes // read.access.access_bytes
        return f"{threads} threads of a warp in {threads} rows, {read.access.access_bytes} B each"
    held = min(read.access.in_flight_bytes, read.access.row_bytes)
    return f"a warp in one row, {held} B in flight"


def _draw_reads(canvas: Canvas, reads: Sequence[RowRead]) -> None:
    scale = canvas.width / (max(read.lines for read in reads) * LINE_BYTES)
    y = canvas.legend(
        0,
        {
            "first": "a load's bytes",
            "second": "the next load's",
            "third": "a request",
            "fourth": "a request for a line asked for before",
        },
    )
    canvas.span(0, LINE_BYTES * scale, y + 14, f"line, {LINE_BYTES} B")
    sector = 2 * LINE_BYTES * scale
    canvas.span(sector, sector + SECTOR_BYTES * scale, y + 14, f"sector, {SECTOR_BYTES} B")
    y += 26
    for read in reads:
        y = _draw_read(canvas, read, y, scale)


def _draw_read(canvas: Canvas, read: RowRead, y: float, scale: float) -> float:
    """Draw loads above the sectors of the lines, requests below; return the y of the next read."""
    canvas.words(0, y + 12, read.name, "name")
    canvas.words(canvas.width, y + 12, _words(read), anchor="end")
    canvas.words(0, y + 26, _in_flight(read), "quiet")
    loads, sectors, requests = y + 33, y + 46, y + 63
    for index, kind in enumerate(("first", "second")):
        for begin, end in read.loads[index::2]:
            canvas.box(begin * scale, loads, (end - begin) * scale, 10, f"{kind} bare")
    for first in range(0, read.lines * LINE_BYTES, SECTOR_BYTES):
        canvas.box(first * scale, sectors, SECTOR_BYTES * scale, 14, "pale")
    for first in range(0, read.lines * LINE_BYTES, LINE_BYTES):
        canvas.box(first * scale, sectors, LINE_BYTES * scale, 14, "outline")
    asked: set[int] = set()
    for request, times in Counter(read.requests).items():
        line = request.first * SECTOR_BYTES // LINE_BYTES
        kind = "fourth" if line in asked and not read.is_alone else "third"
        asked.add(line)
        width = request.data_bytes * scale
        x = request.first * SECTOR_BYTES * scale
        canvas.box(x, requests, width, 13, kind)
        label = f"{times}×" if times > 1 else f"{request.data_bytes} B"
        if width > 6 * len(label):
            canvas.words(x + width / 2, requests + 10, label, "inside", "middle")
    return y + 92


Packet = tuple[int, int]
"""Bytes of data in a completion, and bytes of the row among them."""


def _wires(reads: Sequence[RowRead]) -> list[tuple[str, list[Packet], int]]:
    """Packets on the link by step, and those of the copy engine for as many bytes."""
    wires = [(read.name, _packets(read), read.access.row_bytes) for read in reads]
    row = reads[0].access.row_bytes
    engine = [
        (min(COPY_ENGINE_COMPLETION_BYTES, row - at),) * 2
        for at in range(0, row, COPY_ENGINE_COMPLETION_BYTES)
    ]
    return [*wires, ("copy engine", engine, row)]


def _packets(read: RowRead) -> list[Packet]:
    if read.is_alone:
        return [(request.data_bytes, read.access.access_bytes) for request in read.requests]
    packets = []
    for request in read.requests:
        begin, end = request.first * SECTOR_BYTES, request.end * SECTOR_BYTES
        packets.append((request.data_bytes, min(end, read.end) - max(begin, read.start)))
    return packets


def _wire_bytes(packets: Sequence[Packet]) -> int:
    return sum(data + OVERHEAD_BYTES for data, _ in packets)


def _wire_words(packets: Sequence[Packet], row_bytes: int) -> str:
    wire = _wire_bytes(packets)
    completions, share = _count(len(packets), "completion"), percent(row_bytes / wire)
    return f"{completions}, {whole(wire)} B, {share} payload"


def _draw_wires(canvas: Canvas, wires: Sequence[tuple[str, list[Packet], int]]) -> None:
    """Draw all wires to one scale; the first is far longer than the others and cut off."""
    scale = canvas.width / max(_wire_bytes(packets) for _, packets, _ in wires[1:])
    y = canvas.legend(
        0,
        {
            "first": "payload",
            "unused": "the rest of its sectors",
            "second": "headers and framing",
            "third": "requests, the other way",
        },
    )
    for name, packets, row_bytes in wires:
        canvas.words(0, y + 10, name, "name")
        canvas.words(canvas.width, y + 10, _wire_words(packets, row_bytes), anchor="end")
        for kind, left, right in sorted(_wire_parts(packets, scale, canvas.width)):
            top, height = (y + 16, 4) if kind == "third" else (y + 22, 16)
            canvas.box(left, top, right - left, height, f"{kind} bare")
        y += 46
        if _wire_bytes(packets) * scale > canvas.width + 1:
            times = _wire_bytes(packets) * scale / canvas.width
            canvas.words(
                canvas.width, y + 6, f"and so on, {times:.0f} times as far", "quiet", "end"
            )
            y += 14


def _wire_parts(
    packets: Sequence[Packet], scale: float, end: float
) -> Iterator[tuple[str, float, float]]:
    """Kind, left and right of each request and the parts of its completion, up to `end`."""
    x = 0.0
    for data, used in packets:
        if x >= end - 1:
            return
        yield "third", x, x + REQUEST_BYTES * scale
        sizes = {"second": OVERHEAD_BYTES, "first": used, "unused": data - used}
        for kind, size in sizes.items():
            left, x = x, min(x + size * scale, end)
            if x > left:
                yield kind, left, x
