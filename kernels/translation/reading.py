"""Expected results of reading a pool, computed by many CPU threads: a pool exceeds all caches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernels.common.arrays import Bytes
from kernels.common.parallel import in_parallel

LINE = 128

Numbers = npt.NDArray[np.int64]


def gather(pool: Bytes, size: int, numbers: Numbers, out: Bytes) -> None:
    """Copy the pieces of `size` bytes with these `numbers` from `pool` to `out`, packed."""
    items, landed = _items(pool, size), _items(out, size)

    def some(part: slice) -> None:
        np.take(items, numbers[part], out=landed[part], mode="clip")  # other modes would buffer

    in_parallel(some, len(numbers), size)


def line_words(pool: Bytes, numbers: Numbers, size: int) -> npt.NDArray[np.uint32]:
    """The exclusive or of the 32-bit words in the first `size` bytes of each line.

    `numbers` are those of the lines in `pool`; `size` is a multiple of 8. Returns uint32 [numbers].
    """
    lines, out = _items(pool, LINE), np.empty(len(numbers), np.uint32)

    def some(part: slice) -> None:
        pairs = lines[numbers[part]].view(np.uint64).reshape(-1, LINE // 8)[:, : size // 8]
        folded = np.bitwise_xor.reduce(pairs, axis=1)
        out[part] = (folded ^ folded >> np.uint64(32)) & np.uint64(0xFFFFFFFF)

    in_parallel(some, len(numbers), LINE)
    return out


def _items(array: Bytes, size: int) -> npt.NDArray[np.void]:
    return array[: array.size // size * size].view(np.dtype(f"V{size}"))
