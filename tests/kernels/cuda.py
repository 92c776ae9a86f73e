"""CUDA without a GPU, for Python: memory of devices and pinned memory are memory of the host."""

import atexit
import ctypes
import gc
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cuda.bindings import runtime as cudart

from analysis.measure.memory import DeviceArray
from kernels.common import host_memory, large_pool
from kernels.common.arrays import Bytes, bytes_at

PAGE = 4096
_KEPT: dict[int, Bytes] = {}
"""Memory until it is freed, as a process keeps it: arrays may outlive a test."""


class Cuda:
    """CUDA's runtime in the place of `cudart`. Work on streams is done at once.

    `calls` are the names and first arguments of calls. `failing` names a call and how often it
    succeeds before it fails. Every GPU has `room` free bytes.
    """

    def __init__(self, failing: tuple[str, int] = ("", 0), room: int = 2**40) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.held: dict[int, Bytes] = {}
        self.room = room
        self._failing, self._successes = failing

    def __getattr__(self, name: str) -> Any:
        real = getattr(cudart, name)
        if isinstance(real, type) or not callable(real) or name == "cudaGetErrorString":
            return real
        work = getattr(type(self), f"_{name}", lambda self, *_: ())

        def call(*arguments: Any) -> tuple[Any, ...]:
            if name == self._failing and self.names().count(name) == self._successes:
                return (cudart.cudaError_t.cudaErrorMemoryAllocation,)
            self.calls.append((name, arguments[0] if arguments else 0))
            return (cudart.cudaError_t.cudaSuccess, *work(self, *arguments))

        return call

    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    def _cudaGetDevice(self) -> tuple[int]:
        return (0,)

    def _cudaMemGetInfo(self) -> tuple[int, int]:
        return self.room, 2 * self.room

    def _cudaMalloc(self, size: int, *_: Any) -> tuple[int]:
        memory = np.empty(size + PAGE, np.uint8)
        start = -int(memory.ctypes.data) % PAGE
        address = int(memory.ctypes.data) + start
        self.held[address], _KEPT[address] = memory[start:][:size], memory
        return (address,)

    _cudaHostAlloc = _cudaMallocManaged = _cudaMalloc

    def _cudaFree(self, pointer: int) -> tuple[()]:
        self.held.pop(pointer, None)
        _KEPT.pop(pointer, None)
        return ()

    _cudaFreeHost = _cudaFree

    def _cudaMemcpy(self, to: int, source: int, size: int, *_: Any) -> tuple[()]:
        ctypes.memmove(to, source, size)
        return ()

    def _cudaMemset(self, pointer: int, byte: int, size: int, *_: Any) -> tuple[()]:
        ctypes.memset(pointer, byte, size)
        return ()

    _cudaMemsetAsync = _cudaMemset


def install(monkeypatch: pytest.MonkeyPatch, cuda: Cuda | None = None) -> Cuda:
    """Have all loaded modules use `cuda`, on a system whose pages are huge if asked for."""
    made = cuda or Cuda()
    for name, module in list(sys.modules.items()):
        if not name.startswith("tests.") and vars(module).get("cudart") is cudart:
            monkeypatch.setattr(module, "cudart", made)
    for module in (host_memory, large_pool):
        monkeypatch.setattr(module, "huge_bytes", lambda pointer: 2**62)
    return made


def array_of(device: DeviceArray) -> np.ndarray:
    """The array of a device, in this CUDA's memory."""
    return bytes_at(device.pointer, device.nbytes).view(device.dtype).reshape(device.shape)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cuda]:
    """This CUDA in all loaded modules."""
    gc.freeze()  # what there is already need not be scanned below
    yield install(monkeypatch)
    gc.collect()  # so that memory is freed where it was allocated
    atexit.unregister(_install_for_good)  # at exit, the last one that was registered is the first
    atexit.register(_install_for_good)


def _install_for_good() -> None:
    """So that modules free what they have held for the whole process."""
    install(pytest.MonkeyPatch())
