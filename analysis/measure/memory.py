"""Pinned host arrays and device arrays for workloads, without a framework."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from cuda.bindings import runtime as cudart

from analysis.base.errors import HotpathError
from analysis.measure.cores import threads

Array = npt.NDArray[Any]

_COMPARE_CHUNK = 4 * 2**20
_libc = ctypes.CDLL(None)
_libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class CudaError(HotpathError):
    """A failed CUDA call; after most of these errors the process can no longer use the GPU."""


def cuda(result: tuple[Any, ...]) -> Any:
    """The value of a cuda.bindings call; CudaError with CUDA's message if it failed."""
    status, *values = result
    if status != cudart.cudaError_t.cudaSuccess:
        _, message = cudart.cudaGetErrorString(status)
        raise CudaError(f"CUDA: {message.decode()} ({status.name})")
    return values[0] if len(values) == 1 else values


@contextmanager
def on_gpu(gpu: int) -> Iterator[None]:
    """Send this thread's calls of CUDA to the GPU at this place among those in use."""
    before = cuda(cudart.cudaGetDevice())
    cuda(cudart.cudaSetDevice(gpu))
    try:
        yield
    finally:
        cuda(cudart.cudaSetDevice(before))


class DeviceArray:
    """A C-contiguous array in GPU memory, for anything that reads __cuda_array_interface__."""

    def __init__(
        self, shape: tuple[int, ...], dtype: npt.DTypeLike, what: str, gpu: int = 0
    ) -> None:
        """Allocate on the GPU at this place among those in use. HotpathError names `what` if its
        memory is too small for it."""
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.gpu = gpu
        self.nbytes = int(np.prod(shape)) * self.dtype.itemsize
        with on_gpu(gpu):
            free, _ = cuda(cudart.cudaMemGetInfo())
            if self.nbytes > free:
                raise HotpathError(
                    f"{what}: needs {self.nbytes} B of GPU memory, {free} B are free"
                )
            self.pointer = int(cuda(cudart.cudaMalloc(max(self.nbytes, 1))))

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.pointer, False),
            "version": 3,
        }

    def __len__(self) -> int:
        return self.shape[0]

    # Both wait for the device, because the timed streams do not wait for the default stream.

    def fill(self, byte: int) -> None:
        with on_gpu(self.gpu):
            cuda(cudart.cudaMemset(self.pointer, byte, self.nbytes))
            cuda(cudart.cudaDeviceSynchronize())

    def put(self, host: Array) -> None:
        """Copy a host array of the same size into this one."""
        host = np.ascontiguousarray(host, self.dtype)
        kind = cudart.cudaMemcpyKind.cudaMemcpyHostToDevice
        with on_gpu(self.gpu):
            cuda(cudart.cudaMemcpy(self.pointer, host.ctypes.data, host.nbytes, kind))
            cuda(cudart.cudaDeviceSynchronize())

    def get(self, out: Array | None = None) -> Array:
        """Copy this array to `out`, or to a new host array."""
        out = np.empty(self.shape, self.dtype) if out is None else out
        kind = cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost
        with on_gpu(self.gpu):
            cuda(cudart.cudaMemcpy(out.ctypes.data, self.pointer, self.nbytes, kind))
        return out

    def __del__(self) -> None:
        if hasattr(self, "pointer"):
            cudart.cudaFree(self.pointer)


def bytes_at(pointer: int, size: int) -> npt.NDArray[np.uint8]:
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


def synchronize(stream: int) -> None:
    cuda(cudart.cudaStreamSynchronize(stream))


@cache
def l2_buffer() -> DeviceArray:
    """Device memory of the size of the first GPU's L2, whose memset flushes the L2. Kept until the
    process ends."""
    attribute = cudart.cudaDeviceAttr.cudaDevAttrL2CacheSize
    size = int(cuda(cudart.cudaDeviceGetAttribute(attribute, 0)))
    return DeviceArray((size,), np.uint8, "flush of the L2")


def flush_l2(stream: int, l2: int, l2_bytes: int) -> None:
    """Flush the L2 as NVBench does, by a memset of `l2_bytes` at `l2` (0: no flush), and wait until
    the stream is idle."""
    if l2_bytes:
        cuda(cudart.cudaMemsetAsync(l2, 0, l2_bytes, stream))
    synchronize(stream)


def same_bytes(got: Array, expected: Array) -> bool:
    """Whether two C-contiguous arrays hold the same bytes; compares large arrays in parallel."""
    size = expected.nbytes
    if got.nbytes != size:
        return False

    def chunk(start: int) -> bool:
        length = min(_COMPARE_CHUNK, size - start)
        ends = got.ctypes.data + start, expected.ctypes.data + start
        return bool(_libc.memcmp(*ends, length) == 0)

    return all(threads().map(chunk, range(0, size, _COMPARE_CHUNK)))


def first_difference(got: Array, expected: Array) -> int:
    """Byte offset of the first difference between two arrays that are known to differ."""
    return int(np.argmax(got.view(np.uint8).ravel() != expected.view(np.uint8).ravel()))


def wrong_byte(landed: Array, expected: Array, poison: int) -> str | None:
    """The first byte that differs from `expected`, or after those from `poison`, as a message; None
    if there is none. `landed` is uint8 and at least as long as `expected`, which has any type."""
    size = expected.nbytes
    wanted, guard = expected.view(np.uint8).ravel(), landed[size:]
    if not same_bytes(landed[:size], wanted):
        byte = first_difference(landed[:size], wanted)
        return f"byte {byte}: expected {wanted[byte]}, got {landed[byte]}"
    if np.any(guard != poison):
        return f"byte {size + int(np.argmax(guard != poison))}, after the output, was overwritten"
    return None
