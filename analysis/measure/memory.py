"""Calls of CUDA, arrays in GPU memory, and room for pools in host memory."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from cuda.bindings import runtime as cudart

from analysis.base.errors import HotpathError
from analysis.base.limits import allocatable_bytes
from analysis.measure.cell import Operation

Array = npt.NDArray[Any]

LARGEST_SHARE_OF_FREE: Final = 0.8
"""Maximum share of the memory that this process may still allocate; the rest is for page tables."""


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
        self.shape, self.dtype, self.gpu = shape, np.dtype(dtype), gpu
        self.nbytes = int(np.prod(shape)) * self.dtype.itemsize
        with on_gpu(gpu):
            free, _ = cuda(cudart.cudaMemGetInfo())
            if (needed := self.nbytes) > free:
                raise HotpathError(f"{what}: needs {needed} B of GPU memory, {free} B are free")
            self.pointer = int(cuda(cudart.cudaMalloc(max(self.nbytes, 1))))

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        data = self.pointer, False
        return {"shape": self.shape, "typestr": self.dtype.str, "data": data, "version": 3}

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

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        # At the interpreter's end, imported modules may be gone, and the driver frees everything.
        if not is_ending() and hasattr(self, "pointer"):
            cudart.cudaFree(self.pointer)


def new_stream() -> int:
    """A cudaStream_t of the current GPU."""
    return int(cuda(cudart.cudaStreamCreate()))


_torch_stream = 0


def use(stream: int) -> None:
    """Make PyTorch enqueue its operations on `stream`, a cudaStream_t; 0 is its default stream."""
    global _torch_stream
    if stream != _torch_stream:
        import torch

        external = torch.cuda.ExternalStream(stream) if stream else torch.cuda.default_stream()
        torch.cuda.set_stream(external)
        _torch_stream = stream


def device_seconds(operation: Operation, stream: int, launches: int) -> float:
    """Seconds of a launch between two events: of one span of `launches`, as the write-ups measure;
    the mean of one span each if a reset must come before a launch."""
    start, stop = cuda(cudart.cudaEventCreate()), cuda(cudart.cudaEventCreate())
    seconds = 0.0
    for count in [1] * launches if operation.reset else [launches]:
        if operation.reset:
            operation.reset(stream)
        cuda(cudart.cudaEventRecord(start, stream))
        for _ in range(count):
            operation.launch(stream)
        cuda(cudart.cudaEventRecord(stop, stream))
        cuda(cudart.cudaEventSynchronize(stop))
        seconds += float(cuda(cudart.cudaEventElapsedTime(start, stop))) / 1e3
    return seconds / launches


def synchronize(stream: int) -> None:
    cuda(cudart.cudaStreamSynchronize(stream))


@cache
def l2_span() -> tuple[int, int]:
    """Address and size of device memory as large as the first GPU's L2, whose memset flushes the
    L2. Kept until the process ends."""
    attribute = cudart.cudaDeviceAttr.cudaDevAttrL2CacheSize
    size = int(cuda(cudart.cudaDeviceGetAttribute(attribute, 0)))
    with on_gpu(0):
        return int(cuda(cudart.cudaMalloc(size))), size


def flush_l2(stream: int, l2: int, l2_bytes: int) -> None:
    """Flush the L2 as NVBench does, by a memset of `l2_bytes` at `l2` (0: no flush), and wait until
    the stream is idle."""
    if l2_bytes:
        cuda(cudart.cudaMemsetAsync(l2, 0, l2_bytes, stream))
    synchronize(stream)


def largest_pool() -> int:
    """Bytes that a pool may have in memory of this host now."""
    return int(allocatable_bytes() * LARGEST_SHARE_OF_FREE)
