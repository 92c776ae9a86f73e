"""Lookups of Engram rows that serving engines ship: 256 values of a byte and 8 scales of a byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import torch

from analysis.api.measure import PythonLauncher
from analysis.api.peers import sglang_engram_gather, vllm_engram_kernel
from analysis.api.torch import use
from kernels.common.shipped import on_device

VALUES: Final = 256
VALUES_PER_SCALE: Final = 32
ROWS_PER_TILE: Final = 16
"""Rows that vLLM's kernel looks up at a time."""
HELD_CYCLES: Final = 1_000_000
"""Clock cycles for which the stream waits, so that a sort begins after all of it is enqueued."""

Lookup = Callable[[torch.Tensor], None]
"""Looks up the rows of these numbers, int64 [rows] on the GPU."""


def sglang(pool: np.ndarray, scales: np.ndarray, out: torch.Tensor, is_sorted: bool) -> Lookup:
    """Values times scales as bf16; `is_sorted` lets it sort the row numbers first."""
    gather, rows = sglang_engram_gather(), out.view(torch.bfloat16)
    places = pool.ctypes.data, scales.ctypes.data
    return lambda ids: gather(*places, ids, rows, VALUES, VALUES_PER_SCALE, sort_ids=is_sorted)


def vllm(pool: np.ndarray, scales: np.ndarray, out: torch.Tensor, is_sorted: bool) -> Lookup:
    """Values, then scales, as they are; `is_sorted` sorts the row numbers as it does on GB200."""
    kernel, count = vllm_engram_kernel(), len(out)
    values = torch.from_numpy(pool).view(torch.float8_e4m3fn)
    powers = torch.from_numpy(scales)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    grid = min(-(-count // ROWS_PER_TILE), sms)
    shape = {"HEAD_START": 0, "LOCAL_HEADS": 1, "TOTAL_HEADS": 1, "DIM": VALUES}
    shape |= {"QUANT_BLOCK": VALUES_PER_SCALE, "BLOCK_R": ROWS_PER_TILE, "GRID": grid}
    shape |= {"PACKED": True, "OUT_STRIDE": out.stride(0), "PEER_ROWS": 0}

    def look_up(ids: torch.Tensor) -> None:
        places = ids
        if is_sorted:
            ids, places = vllm_sort(ids)
        bounds = (0, len(pool), count, 1, 1)
        kernel[(grid,)](values, powers, ids, places, out, *bounds, SORTED=is_sorted, **shape)

    return look_up


def sglang_sort(ids: torch.Tensor) -> Any:
    return torch.sort(ids)


def vllm_sort(ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    ids, places = ids.flatten().sort()
    return ids, places.int()


OPERATORS: Final = {"sglang": (sglang, sglang_sort), "vllm": (vllm, vllm_sort)}
"""Lookups, and what they do to sort, by the option `operator`."""


class Bound(PythonLauncher):
    """Every launch looks up the next set of `pairs`, int32 [sets, rows, 2] on the GPU, whose number
    is then in `current`, int64 [1]. `pool` [pool_rows, 256] and `scales` [pool_rows, 8] are pinned
    host memory, `out` [rows, bytes] is on the GPU, all uint8."""

    def __init__(
        self,
        operator: str,
        is_sorted: bool,
        pool: np.ndarray,
        scales: np.ndarray,
        out: torch.Tensor,
        pairs: Any,
        current: np.ndarray,
    ) -> None:
        bind, self._sort = OPERATORS[operator]
        self._ids = on_device(pairs)[..., 0].long().contiguous()
        self._look_up = bind(pool, scales, out, is_sorted)
        self._is_sorted = is_sorted
        self._current = current

    def _launch(self, stream: int) -> None:  # PythonLauncher times it
        use(stream)
        self._current[0] = (self._current[0] + 1) % len(self._ids)
        self._look_up(self._ids[int(self._current[0])])

    def sort_seconds(self, stream: int, count: int) -> Iterator[float]:
        """Device times of the sort alone, of the next sets; none if it does not sort."""
        use(stream)
        for number in range(count if self._is_sorted else 0):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(HELD_CYCLES)
            begin.record()
            self._sort(self._ids[(int(self._current[0]) + 1 + number) % len(self._ids)])
            end.record()
            end.synchronize()
            yield begin.elapsed_time(end) * 1e-3

    def flush(self, index: int) -> bool:
        """There are no threads that could flush rows from the CPU's caches."""
        del index
        return False

    def close(self) -> None:
        self.__dict__.clear()


def load(operator: str, order: str) -> None:
    """Load the operator."""
    del order
    {"sglang": sglang_engram_gather, "vllm": vllm_engram_kernel}[operator]()


def bind(
    pool: np.ndarray,
    scales: np.ndarray,
    dst: Any,
    pairs: Any,
    current: np.ndarray,
    *,
    operator: str,
    order: str,
) -> Bound:
    """Rows [0, rows) of `dst` become those of a set of `pairs`; `order` is unsorted or sorted."""
    out = on_device(dst)[: pairs.shape[1]]
    return Bound(operator, order == "sorted", pool, scales, out, pairs, current)
