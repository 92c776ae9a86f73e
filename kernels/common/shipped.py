"""Parts of variants that call operators that serving engines ship: always from Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import torch

from analysis.api.measure import PythonLauncher
from analysis.api.peers import (
    sglang_kernel_operators,
    sglang_module,
    vllm_operators,
    vllm_swap_kernel,
)
from analysis.api.study import require_known

HICACHE_DEFAULT: Final = 2
"""sglang's number of blocks for a copy by registers, in its hicache and in sglang-kernel."""
TMA_DEFAULT: Final = 4
PAGE_ROWS: Final = 64
WARPS: Final = 32
CHUNK_BYTES: Final = 1024
"""Bytes that vLLM's kernel copies at a time for rows of up to 1 KiB."""

_current: int | None = None

Copy = Callable[[torch.Tensor, torch.Tensor], None]
"""Copies the rows `sources` of the pool to the rows `targets` of the destination, int64."""


def use(stream: int) -> None:
    """Make PyTorch and what it calls work on `stream`, a cudaStream_t; 0 is the default stream."""
    global _current
    if stream != _current:
        default = torch.cuda.default_stream()
        torch.cuda.set_stream(torch.cuda.ExternalStream(stream) if stream else default)
        _current = stream


def on_device(array: Any) -> torch.Tensor:
    """The same GPU memory as a tensor."""
    return torch.as_tensor(array, device="cuda")


class Copies(PythonLauncher):
    """A shipped copy of scattered rows from a pool of pinned host memory.

    pool: uint8 [rows, row_bytes]; dst: uint8 [rows, row_bytes] on the GPU; sources and targets:
    int64 [sets, rows] on the GPU. `select` chooses the set that is copied next.
    """

    def __init__(
        self,
        operator: str,
        pool: np.ndarray,
        dst: torch.Tensor,
        sources: torch.Tensor,
        targets: torch.Tensor,
    ) -> None:
        require_known("operator", operator, sorted(OPERATORS))
        host = torch.from_numpy(pool)
        row_bytes = pool.shape[1]
        if operator in BY_ADDRESS:
            sources = sources * row_bytes + host.data_ptr()
            targets = targets * row_bytes + dst.data_ptr()
            if operator == "vllm_swap_batch":
                sources, targets = sources.cpu(), targets.cpu()
        self._sources, self._targets = sources.contiguous(), targets.contiguous()
        self._copy = OPERATORS[operator](host, dst, sources.shape[1])
        self.select(0)

    def select(self, index: int) -> None:
        self._pair = self._sources[index], self._targets[index]

    def _launch(self, stream: int) -> None:  # PythonLauncher times it
        use(stream)
        self._copy(*self._pair)

    def flush(self, index: int) -> bool:
        """There are no threads that could flush rows from the CPU's caches."""
        del index
        return False

    def close(self) -> None:
        self.__dict__.clear()


def load_copy(operator: str) -> None:
    """Compile and load one of OPERATORS."""
    LOADS[operator]()


def _tma() -> Any:
    quota = TMA_DEFAULT
    kernel = f"&HiCacheTmaKernel<32768, 6, 4, {quota}>"  # its stage, stages and warps that store
    names = ("run_one_mla", "fits_device")
    return sglang_module("hicache_tma.cuh", {name: f"{kernel}::{name}" for name in names})


def _page_unified(blocks: int, row_bytes: int = 656) -> Any:
    kernel = f"&HiCacheKernel<{row_bytes}, 1, {blocks}, 1024>::run_one_page_unified<true>"
    return sglang_module("hicache.cuh", {"run": kernel})


def _swap_batch() -> Any:
    return vllm_operators("cache_kernels.cu", ["swap_blocks_batch"], "CPU").swap_blocks_batch


def tma(host: torch.Tensor, dst: torch.Tensor, rows: int) -> Copy:
    del rows
    module = _tma()
    if not module.fits_device(torch.cuda.current_device()):
        raise ValueError("hicache_tma: fits_device says that it does not run on this GPU")
    return lambda sources, targets: module.run_one_mla(dst, targets, host, sources)


def page_unified(blocks: int, host: torch.Tensor, dst: torch.Tensor, rows: int) -> Copy:
    """Pages of PAGE_ROWS rows of one layer; the last page may be incomplete."""
    del rows
    row_bytes = host.shape[1]
    entry = _page_unified(blocks, row_bytes).run
    pages = host[: len(host) // PAGE_ROWS * PAGE_ROWS].view(-1, PAGE_ROWS * row_bytes)
    return lambda sources, targets: entry(dst, dst, pages, sources, targets, 0, 1, 1, PAGE_ROWS)


def transfer_mla(blocks: int, host: torch.Tensor, dst: torch.Tensor, rows: int) -> Copy:
    del rows
    entry, row_bytes = sglang_kernel_operators().transfer_kv_per_layer_mla, host.shape[1]
    return lambda sources, targets: entry(host, dst, sources, targets, row_bytes, blocks, WARPS)


def swap_kernel(programs: int | None, host: torch.Tensor, dst: torch.Tensor, rows: int) -> Copy:
    kernel, default = vllm_swap_kernel()
    sizes = torch.full((rows,), host.shape[1], dtype=torch.int64, device=dst.device)
    grid = (min(programs or default, rows),)
    return lambda sources, targets: kernel[grid](
        sources, targets, sizes, rows, BYTES_PER_CHUNK=CHUNK_BYTES
    )


def swap_batch(host: torch.Tensor, dst: torch.Tensor, rows: int) -> Copy:
    del dst
    entry = _swap_batch()
    sizes = torch.full((rows,), host.shape[1], dtype=torch.int64)
    return lambda sources, targets: entry(sources, targets, sizes, True)


OPERATORS: Final[dict[str, Callable[[torch.Tensor, torch.Tensor, int], Copy]]] = {
    "sglang_tma": tma,
    "sglang_pages": partial(page_unified, HICACHE_DEFAULT),
    "sglang_pages_32": partial(page_unified, 32),
    "sglang_transfer": partial(transfer_mla, HICACHE_DEFAULT),
    "sglang_transfer_32": partial(transfer_mla, 32),
    "vllm_swap": partial(swap_kernel, None),
    "vllm_swap_128": partial(swap_kernel, 128),
    "vllm_swap_batch": swap_batch,
}
"""By the option `operator` of a variant: a function of the pool, the destination and the number of
rows."""

LOADS: Final[dict[str, Callable[[], Any]]] = {
    "sglang_tma": _tma,
    "sglang_pages": partial(_page_unified, HICACHE_DEFAULT),
    "sglang_pages_32": partial(_page_unified, 32),
    "sglang_transfer": sglang_kernel_operators,
    "sglang_transfer_32": sglang_kernel_operators,
    "vllm_swap": vllm_swap_kernel,
    "vllm_swap_128": vllm_swap_kernel,
    "vllm_swap_batch": _swap_batch,
}

BY_ADDRESS: Final = ("vllm_swap", "vllm_swap_128", "vllm_swap_batch")
"""Operators that take addresses instead of rows."""
