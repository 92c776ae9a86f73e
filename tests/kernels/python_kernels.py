"""Kernels of studies in Python: what a compiled variant would do with its arguments."""

from __future__ import annotations

import math
import re
import struct
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from analysis.study import Variant
from analysis.toolchain.modules import load_python
from kernels.common.arrays import bytes_at
from kernels.common.outputs import POISON
from kernels.hot_set.policies import Clock
from kernels.hot_set.reference import HotSet, buffer_of
from tests.kernels.cuda import array_of
from tests.repository import STUDIES


def rows_at(pointer: int, numbers: np.ndarray, size: int) -> np.ndarray:
    """The memory at an address up to the last of these rows, uint8 [rows, size]."""
    return bytes_at(pointer, (int(numbers.max()) + 1) * size).reshape(-1, size)


def copy(to: int, source: int, size: int) -> None:
    bytes_at(to, size)[:] = bytes_at(source, size)


class Pieces:
    """Moves of pieces: transfers, duplex, idle_stream."""

    def __init__(self, host: int, device: int, **pieces: Any) -> None:
        self.pieces = SimpleNamespace(**{"to_device": True, "places": 0, "landing": 0, **pieces})
        self.host, self.device = host, device

    def launch(self, stream: int) -> None:
        p = self.pieces
        places: list[Any] = [(i * p.pitch, i * p.size) for i in range(p.count)]
        if p.places:
            places = bytes_at(p.places, 16 * p.count).view(np.int64).reshape(-1, 2).tolist()
        for on_host, on_device in places:
            host, device = self.host + on_host, self.device + on_device
            copy(*((device, host) if p.to_device else (host, device)), p.size)
            if p.landing:
                copy(p.landing + on_host, p.source + on_device, p.size)

    def cpu_times(self, stream: int, count: int) -> list[float]:
        return [1e-6] * count


class Behind:
    """duplex: a large and a small copy, each from and to an address."""

    def __init__(self, *copies: Any) -> None:
        *self.copies, chunk_bytes, has_kernels = copies
        assert chunk_bytes > 0 and has_kernels in (False, True)

    def launch(self, stream: int) -> None:
        for to, source, size in self.copies:
            bytes_at(to, size)[:] = bytes_at(source, size)

    def small_seconds(self, stream: int, is_behind: bool) -> float:
        return 1e-6


def duplex(variant: Variant) -> Any:
    """The module of duplex."""
    return SimpleNamespace(bind=Behind if variant.workload == "behind_workload" else Pieces)


class RowsByPairs:
    """h2d_gather: row by row, from and to the places of pairs."""

    def __init__(self, src: np.ndarray, dst: Any, pairs: Any, *_: Any, **__: str) -> None:
        self.src, self.dst, self.pairs = src, dst, pairs

    def launch(self, stream: int) -> None:
        out = array_of(self.dst)
        sources, places = array_of(self.pairs).reshape(-1, 2).T
        out[places] = self.src[sources, : out.shape[1]]


class PoolRows:
    """pool_gather: the next set of pairs. `sets` are those of its launches."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = SimpleNamespace(**arguments)
        self.sets: list[int] = []
        self.is_open = True

    def launch(self, stream: int) -> None:
        assert self.is_open
        of = self.arguments
        pairs = array_of(of.pairs)
        of.current[0] = (of.current[0] + 1) % len(pairs)
        self.sets.append(int(of.current[0]))
        sources, places = pairs[of.current[0]].T
        array_of(of.dst)[places] = self.rows(of, sources)

    def rows(self, of: Any, sources: np.ndarray) -> np.ndarray:
        rows: np.ndarray = of.pool[sources]
        if of.scales is None:
            return rows
        return np.concatenate([rows[:, :512], array_of(of.scales)[sources], rows[:, 512:]], axis=1)

    def flush(self, set: int) -> bool:
        return False

    def close(self) -> None:
        self.is_open = False


class EngramRows(PoolRows):
    """pool_gather: the next set of pairs, of rows of an Engram table with their scales."""

    def rows(self, of: Any, sources: np.ndarray) -> np.ndarray:
        values, scales = of.pool[sources], of.scales[sources]
        if of.operator == "vllm":
            return np.concatenate([values, scales], axis=1)
        factors = zip(values.tolist(), scales.repeat(32, axis=1).tolist(), strict=True)
        products = [list(map(bf16_product, *each)) for each in factors]
        return np.array(products, np.uint16).view(np.uint8)

    def sort_seconds(self, stream: int, count: int) -> list[float]:
        return [1e-6] * (count if self.arguments.order == "sorted" else 0)


@cache
def bf16_product(value: int, scale: int) -> int:
    """The bits of an e4m3 number times an e8m0 scale as bf16."""
    sign, exponent, fraction = value >> 7, value >> 3 & 15, value & 7
    if value & 127 == 127 or (scale == 255 and value & 127 == 0):
        return 0x7FFF
    if scale == 255:
        return sign << 15 | 0x7F80
    number = math.ldexp(8 * (exponent > 0) + fraction, max(exponent, 1) - 10 + scale - 127)
    if number >= 2.0**128:
        return sign << 15 | 0x7F80
    (bits,) = struct.unpack("<I", struct.pack("<f", number))
    return int(sign << 15 | bits + 0x7FFF + (bits >> 16 & 1) >> 16)


def pool_rows(variant: Variant) -> Any:
    """The module of pool_gather."""
    kind = EngramRows if variant.workload == "engram_workload" else PoolRows
    return SimpleNamespace(bind=kind)


class HotSets:
    """hot_set: the reference of every layer and request; without times of last use, if it is
    shipped."""

    def __init__(self, variant: Variant, **arrays: Any) -> None:
        self.pool, self.has_times = arrays["pool"], variant.role != "shipped"
        names = ("places", "ids", "out", "hot", "rows", "last_used")
        self.arrays = {name: array_of(arrays[name]) for name in names}
        kind = Clock if variant.options.get("policy") == "clock" else HotSet
        layers, requests, slots = self.arrays["rows"].shape
        context_rows = self.arrays["places"].shape[2]
        self.sets: dict[tuple[int, ...], Any] = {
            at: kind(slots, context_rows) for at in np.ndindex(layers, requests)
        }

    def advance(self, stream: int, index: int, number: int) -> None:
        self.ids = self.arrays["ids"][index]

    def launch(self, stream: int) -> None:
        of = self.arrays
        for at, hot_set in self.sets.items():
            of["out"][at] = hot_set.step(self.ids[at[1]]).slots
            of["rows"][at] = hot_set.rows
            if self.has_times:
                of["last_used"][at] = getattr(hot_set, "last_used", 0)
            of["hot"][at] = buffer_of(hot_set, of["places"][at], self.pool, POISON)

    def publish(self) -> None:
        """All state is in the arrays."""

    close = publish


class RowsInOrder:
    """link_calibration: rows that begin at given vectors, or one block."""

    def __init__(self, pool: int, dst: int, starts: int, rows: int, vectors: int, *_: int) -> None:
        self.pool, self.dst, self.size = pool, dst, 16 * vectors
        self.starts = bytes_at(starts, 4 * rows).view(np.int32) if starts else np.arange(rows)

    def launch(self, stream: int) -> None:
        for i, start in enumerate(self.starts.tolist()):
            copy(self.dst + i * self.size, self.pool + 16 * start, self.size)


def fills(variant: Variant) -> Any:
    """The module of storage_fill, whose variants get an address or an array: one value in all
    elements."""

    def fill(pointer: int, count: int, value: float) -> Any:
        elements = bytes_at(pointer, 4 * count).view(np.float32)
        return SimpleNamespace(launch=lambda stream: elements.fill(value))

    def bind(square: Any, value: float) -> Any:
        interface = square.__cuda_array_interface__
        return fill(interface["data"][0], interface["shape"][0], value).launch

    return SimpleNamespace(Bound=fill, bind=bind)


class Reads:
    """translation: the kernels as loops. `firsts` are the first reads of launches."""

    def __init__(self, variant: Variant) -> None:
        self.is_of_lines = "lines" in variant.name
        self.firsts: list[int] = []

    def launch(self, pool: int, places: int, dst: int, *of: int) -> None:
        stride, count, span, reads, vectors, first, _ = of
        self.firsts.append(first)
        order = bytes_at(places, 4 * count).view(np.int32) if places else np.arange(count)
        size = 16 * vectors
        for i, number in enumerate(range(first, first + reads)):
            start = int(order[number % count]) * stride * 16 + number // count % span * 128
            read = bytes_at(pool + start, size)
            if self.is_of_lines:
                read = np.bitwise_xor.reduce(read.view(np.uint32), keepdims=True).view(np.uint8)
            bytes_at(dst + i * read.size, read.size)[:] = read


class Transport:
    """peers: the module of a variant with the plan in its source. `sets` are those of its launches,
    `rejoined` counts waits for neighbours."""

    Part = SimpleNamespace

    def __init__(self, variant: Variant) -> None:
        found = re.search(r"[pP]lan\b.* = \{(.*?)\}", variant.path.read_text(), re.DOTALL)
        assert found is not None
        words = re.findall(r'"(\w+)"(?!:)', found[1])  # without the keys of a plan in Python
        names = ("rows_in", "moved_by", "written_to", "how", "beside")
        self.plan: dict[str, str] = dict(zip(names, words, strict=True))
        self.sets: list[int] = []
        self.rejoined = 0

    def Bound(self, parts: list[Any], gpus: int, cpus: list[int], operator: str = "") -> Transport:
        assert cpus
        self.parts = parts
        self.sets_in_all = len(parts[0].sources) if parts else 2
        return self

    def restart(self) -> None:
        self.sets.clear()

    def launch(self, stream: int) -> None:
        turn = len(self.sets)
        self.sets.append(1 + (turn - 1) % (self.sets_in_all - 1) if turn else 0)
        for part in self.parts:
            how = self.plan["beside" if part.is_neighbour else "how"]
            self.move(part, self.sets[-1], how)

    def move(self, part: Any, number: int, how: str) -> None:
        """The share of a launch that one GPU does."""
        size = part.row_bytes
        drawn = bytes_at(part.pairs + 8 * number * part.set_rows, 8 * part.set_rows)
        sources, places = drawn.view(np.int32).reshape(-1, 2)[part.begin :][: part.rows].T
        if how == "copy":
            places = np.arange(part.begin, part.begin + part.rows)
            sources = part.sources[number] + places - part.begin
        if part.rows:
            rows_at(part.dst, places, size)[places] = rows_at(part.pool, sources, size)[sources]

    def rejoin(self, stream: int) -> None:
        self.rejoined += 1


UNPACK = load_python(STUDIES["unpack"], "workload")


class Fragments:
    """unpack: a loop over the blocks, whose plan is in `blocks`."""

    def __init__(self, blocks: np.ndarray, of_chunks: Any, *ends: int) -> None:
        room = (blocks.nbytes // sum(of_chunks) - UNPACK.block_type(0).itemsize) // 16
        self.blocks = blocks.view(UNPACK.block_type(room))
        self.bounce, self.bounce_bytes, self.dst, self.dst_bytes = ends
        assert (self.blocks["bounce"] == self.bounce).all()
        assert (self.blocks["dst"] == self.dst).all()

    def launch(self, stream: int) -> None:
        for block in self.blocks:
            for source, length, at in block["descriptors"][: block["count"]].tolist():
                assert source + length <= self.bounce_bytes and at + length <= self.dst_bytes
                copy(self.dst + at, self.bounce + source, length)

    def waits(self) -> bool:
        return True

    must_get_ready = waits

    def get_ready(self) -> None:
        """Nothing runs between launches."""

    def parts(self, stream: int) -> dict[str, float]:
        return {"launch_time": 1.0, "wait_time": 2.0}
