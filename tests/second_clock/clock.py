"""The second clock from Python: compiled once per process, and called between samples only."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from analysis.base.errors import HotpathError
from analysis.measure.rig import Bound
from analysis.toolchain.compile import run
from analysis.toolchain.compilers import Toolchain

SOURCE = Path(__file__).parent / "second_clock.cu"

ADDRESS = ctypes.c_void_p


def build(toolchain: Toolchain, arch: str, folder: Path) -> Path:
    """Compile the second clock into a shared library in `folder`. HotpathError if that fails."""
    out = folder / "second_clock.so"
    libraries = [f"-L{path}" for path in toolchain.libraries]
    options = ["-std=c++17", "-O2", f"-arch={arch}", "-shared", "-Xcompiler=-fPIC"]
    run([str(toolchain.nvcc), *options, str(SOURCE), *libraries, "-o", str(out)])
    return out


class SecondClock:
    """The compiled second clock. Times are in seconds; HotpathError has the program's message."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))  # releases the GIL during calls
        self._library.message.restype = ctypes.c_char_p
        for name in ("flush", "device_time", "host_time", "allocator_time"):
            getattr(self._library, name).restype = ctypes.c_double

    def device_time(self, bound: Bound) -> float:
        """Time between events around one launch in a held stream, after its reset."""
        self._reset(bound)
        return self._call("device_time", *_addresses(bound), ADDRESS(bound.stream))

    def host_time(self, bound: Bound) -> float:
        """Time of one launch and its wait, after its reset; what the CPU reads is in no cache."""
        self._reset(bound)
        self._call("flush", ADDRESS(bound.stream))
        if bound.variant.host_work and bound.operation.settle:
            bound.operation.settle()
        return self._call("host_time", *_addresses(bound), ADDRESS(bound.stream))

    def allocator_time(self, allocator: Any, tape: np.ndarray) -> float:
        """Time per operation of a tape, uint64 [operations, 4] of (kind, slot, bytes, stream) that
        allocates (kind 0) and frees (kind 1), after other work."""
        sizes = np.where(tape[:, 0] == 0, tape[:, 2], 0).astype(np.uint64)
        slots = tape[:, 1].astype(np.uint32)
        return self._call(
            "allocator_time",
            ADDRESS(allocator.address),
            ADDRESS(sizes.ctypes.data),
            ADDRESS(slots.ctypes.data),
            ctypes.c_size_t(len(tape)),
            ctypes.c_size_t(int(slots.max()) + 1),
        )

    def _reset(self, bound: Bound) -> None:
        if bound.operation.reset:
            bound.operation.reset(bound.stream)
            bound.wait()

    def _call(self, name: str, *arguments: Any) -> float:
        seconds: float = getattr(self._library, name)(*arguments)
        if seconds < 0:
            raise HotpathError(f"second clock: {self._library.message().decode()}")
        return seconds


def _addresses(bound: Bound) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    """Addresses of the C function that does the work once, and of its argument."""
    launch, launched = bound.operation.launcher.addresses  # type: ignore[attr-defined]
    return ADDRESS(launch), ADDRESS(launched)
