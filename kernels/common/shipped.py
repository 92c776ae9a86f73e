"""Parts of variants that call operators that serving engines ship: always from Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from analysis.api.torch import use

BLOCKS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
"""Numbers of blocks with which kernels are compiled whose number is a template's argument."""
PAGE_ROWS: Final = 64
WARPS: Final = 32
ROW_BYTES: Final = 656
CHUNK_BYTES: Final = 1024
"""Bytes that vLLM's kernel copies at a time for rows of up to 1 KiB."""

Copy = Callable[[torch.Tensor, torch.Tensor], None]
"""Copies the rows `sources` of the pool to the rows `targets` of the destination, int64."""


def on_device(array: Any) -> torch.Tensor:
    """The same GPU memory as a tensor."""
    return torch.as_tensor(array, device="cuda")


class Copies(PythonLauncher):
    """A shipped copy of scattered rows from a pool of pinned host memory.

    pool: uint8 [rows, row_bytes]; dst: uint8 [rows, row_bytes] on the GPU; sources and targets:
    int64 [sets, rows] on the GPU. `select` chooses the set that is copied next. `blocks` of 0 are
    those of OPERATORS.
    """

    def __init__(
        self,
        operator: str,
        blocks: int,
        pool: np.ndarray,
        dst: torch.Tensor,
        sources: torch.Tensor,
        targets: torch.Tensor,
    ) -> None:
        require_known("operator", operator, sorted(OPERATORS))
        host = torch.from_numpy(pool)
        row_bytes = pool.shape[1]
        if OPERATORS[operator].takes_addresses:
            sources = sources * row_bytes + host.data_ptr()
            targets = targets * row_bytes + dst.data_ptr()
        if operator == "vllm_swap_batch":
            sources, targets = sources.cpu(), targets.cpu()
        self._sources, self._targets = sources.contiguous(), targets.contiguous()
        bind, default = OPERATORS[operator].bind, OPERATORS[operator].blocks
        self._copy = bind(host, dst, sources.shape[1], blocks or default)
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
    OPERATORS[operator].load()


def _tma() -> Any:
    exports = {"fits_device": f"{_tma_kernel(BLOCKS[0])}::fits_device"}
    exports |= {f"run_{blocks}": f"{_tma_kernel(blocks)}::run_one_mla" for blocks in BLOCKS}
    return sglang_module("hicache_tma.cuh", exports)


def _tma_kernel(blocks: int) -> str:
    return f"&HiCacheTmaKernel<32768, 6, 4, {blocks}>"  # its stage, stages and warps that store


def _page_unified() -> Any:
    kernels = {n: f"&HiCacheKernel<{ROW_BYTES}, 1, {n}, 1024>" for n in BLOCKS}
    exports = {f"run_{n}": f"{kernel}::run_one_page_unified<true>" for n, kernel in kernels.items()}
    return sglang_module("hicache.cuh", exports)


def _swap_batch() -> Any:
    return vllm_operators("cache_kernels.cu", ["swap_blocks_batch"], "CPU").swap_blocks_batch


def tma(host: torch.Tensor, dst: torch.Tensor, rows: int, blocks: int) -> Copy:
    del rows
    module = _tma()
    if not module.fits_device(torch.cuda.current_device()):
        raise ValueError("hicache_tma: fits_device says that it does not run on this GPU")
    entry = getattr(module, f"run_{blocks}")
    return lambda sources, targets: entry(dst, targets, host, sources)


def page_unified(host: torch.Tensor, dst: torch.Tensor, rows: int, blocks: int) -> Copy:
    """Pages of PAGE_ROWS rows of one layer; the last page may be incomplete."""
    del rows
    entry = getattr(_page_unified(), f"run_{blocks}")
    pages = host[: len(host) // PAGE_ROWS * PAGE_ROWS].view(-1, PAGE_ROWS * ROW_BYTES)
    return lambda sources, targets: entry(dst, dst, pages, sources, targets, 0, 1, 1, PAGE_ROWS)


def transfer_mla(host: torch.Tensor, dst: torch.Tensor, rows: int, blocks: int) -> Copy:
    del rows
    entry, row_bytes = sglang_kernel_operators().transfer_kv_per_layer_mla, host.shape[1]
    return lambda sources, targets: entry(host, dst, sources, targets, row_bytes, blocks, WARPS)


def swap_kernel(host: torch.Tensor, dst: torch.Tensor, rows: int, blocks: int) -> Copy:
    kernel, default = vllm_swap_kernel()
    sizes = torch.full((rows,), host.shape[1], dtype=torch.int64, device=dst.device)
    grid = (min(blocks or default, rows),)
    return lambda sources, targets: kernel[grid](
        sources, targets, sizes, rows, BYTES_PER_CHUNK=CHUNK_BYTES
    )


def swap_batch(host: torch.Tensor, dst: torch.Tensor, rows: int, blocks: int) -> Copy:
    del dst, blocks
    entry = _swap_batch()
    sizes = torch.full((rows,), host.shape[1], dtype=torch.int64)
    return lambda sources, targets: entry(sources, targets, sizes, True)


@dataclass(frozen=True)
class Operator:
    """`load` compiles and loads it. `bind` returns its copy, from the pool, the destination, the
    number of rows and that of blocks; 0 `blocks` are its own default."""

    load: Callable[[], Any]
    bind: Callable[[torch.Tensor, torch.Tensor, int, int], Copy]
    blocks: int = 0
    takes_addresses: bool = False


OPERATORS: Final = {
    "sglang_tma": Operator(_tma, tma, blocks=4),
    "sglang_pages": Operator(_page_unified, page_unified, blocks=2),
    "sglang_pages_32": Operator(_page_unified, page_unified, blocks=32),
    "sglang_transfer": Operator(sglang_kernel_operators, transfer_mla, blocks=2),
    "sglang_transfer_32": Operator(sglang_kernel_operators, transfer_mla, blocks=32),
    "vllm_swap": Operator(vllm_swap_kernel, swap_kernel, takes_addresses=True),
    "vllm_swap_128": Operator(vllm_swap_kernel, swap_kernel, blocks=128, takes_addresses=True),
    "vllm_swap_batch": Operator(_swap_batch, swap_batch, takes_addresses=True),
}
"""By the option `operator` of a variant. The numbers of blocks of sglang's first of each are those
that it passes by default."""
