"""Arrays in host memory that GPUs read, without a framework."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.api.memory import cuda, cudart
from analysis.api.study import HotpathError

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]


def bytes_at(pointer: int, size: int) -> Bytes:
    """The memory at an address as uint8 [size], which does not keep it."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(pointer))


def pinned(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """An uninitialised array in page-locked host memory, kept until the process ends."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    pointer = cuda(cudart.cudaHostAlloc(size, cudart.cudaHostAllocMapped))
    return bytes_at(int(pointer), size).view(dtype).reshape(shape)


def managed(shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """An uninitialised array in managed memory, kept until the process ends.

    HotpathError if it would take more than a quarter of the GPU's free memory: requesting more
    managed memory than a GPU has can hang it.
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    free, _ = cuda(cudart.cudaMemGetInfo())
    if size > free // 4:
        raise HotpathError(f"managed memory: {size} B is more than a quarter of {free} B free")
    pointer = cuda(cudart.cudaMallocManaged(size, cudart.cudaMemAttachGlobal))
    return bytes_at(int(pointer), size).view(dtype).reshape(shape)


def move_to_host(array: Array, stream: int) -> None:
    """Enqueue the migration of a managed array's pages to the host."""
    host = cudart.cudaMemLocation()
    host.type = cudart.cudaMemLocationType.cudaMemLocationTypeHost
    cuda(cudart.cudaMemPrefetchAsync(array.ctypes.data, array.nbytes, host, 0, stream))
