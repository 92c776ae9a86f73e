"""Times the same kernels with NVBench, a process after the other, as files of identical programs.

    python -m analysis.compare.trial.identical kernels.cubin FOLDER --seconds 40

needs a GPU. FOLDER gets 00.json, 01.json ... with their samples. `nvcc -cubin` makes the cubin.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
import traceback
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from analysis.base.cli import fail_in_one_line

SAMPLES: Final = 100
BUFFER_BYTES: Final = 256 * 2**20
HOST_BYTES: Final = 16 * 2**20
BLOCKS, THREADS = 1056, 256
SIZES: Final[dict[str, tuple[int, ...]]] = {
    "fma_chain": (2_000, 8_000, 32_000, 128_000, 512_000),
    "copy": tuple(2**20 * size // 16 for size in (1, 4, 16, 64, 256)),
    "sum": tuple(2**20 * size // 16 for size in (1, 4, 16, 64, 256)),
    "gather": (2**13, 2**15, 2**17, 2**19, 2**21),
    "histogram": (2**16, 2**18, 2**20, 2**22, 2**24),
    "host_read": tuple(2**10 * size // 16 for size in (64, 256, 1024, 4096, 16384)),
}
"""Loops, or number of elements, of each benchmark."""


class Kernels:
    """The compiled kernels with their buffers, in the context that NVBench uses."""

    def __init__(self, cubin: Path) -> None:
        from cuda.bindings import driver, runtime

        self._driver = driver
        _checked(runtime.cudaFree(0))
        module = _checked(driver.cuModuleLoadData(cubin.read_bytes()))
        self._functions = {
            name: _checked(driver.cuModuleGetFunction(module, name.encode()))
            for name in ("fma_chain", "copy", "sum", "gather", "histogram")
        }
        source, target, rows = (int(_checked(runtime.cudaMalloc(BUFFER_BYTES))) for _ in range(3))
        host = int(_checked(runtime.cudaHostAlloc(HOST_BYTES, runtime.cudaHostAllocMapped)))
        random = np.random.default_rng(1).integers(0, BUFFER_BYTES // 128, BUFFER_BYTES // 4)
        indices = random.astype(np.int32)
        to_device = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice
        _checked(runtime.cudaMemset(source, 0, BUFFER_BYTES))
        _checked(runtime.cudaMemset(target, 0, BUFFER_BYTES))
        _checked(runtime.cudaMemcpy(rows, indices.ctypes.data, indices.nbytes, to_device))
        ctypes.memset(host, 0, HOST_BYTES)
        self._buffers = {
            "fma_chain": (target,),
            "copy": (source, target),
            "sum": (source, target),
            "gather": (rows, source, target),
            "histogram": (rows, target),
            "host_read": (host, target),
        }

    def launcher(self, name: str, size: int, stream: int) -> Callable[[Any], None]:
        """The launch of a benchmark on a stream."""
        driver = self._driver
        function = self._functions["copy" if name == "host_read" else name]
        buffers = self._buffers[name]
        kinds = (*(ctypes.c_void_p for _ in buffers), ctypes.c_longlong)
        handle = driver.CUstream(stream)

        def launch(_: Any) -> None:
            grid = (BLOCKS, 1, 1, THREADS, 1, 1)
            _checked(
                driver.cuLaunchKernel(function, *grid, 0, handle, ((*buffers, size), kinds), 0)
            )

        return launch


def _checked(result: tuple[Any, ...]) -> Any:
    status, *values = result
    if int(status) != 0:
        raise RuntimeError(f"CUDA: {status!r}")
    return values[0] if values else None


def time_once(cubin: Path, out: Path) -> None:
    """Time every benchmark once in this process; NVBench writes `out` and the samples beside it."""
    from cuda import bench

    kernels: list[Kernels] = []

    def benchmark(name: str) -> Callable[[Any], None]:
        def run(state: Any) -> None:
            try:
                if not kernels:
                    kernels.append(Kernels(cubin))
                stream = state.get_stream().addressof()
                state.exec(
                    kernels[0].launcher(name, state.get_int64("size"), stream), batched=False
                )
            except BaseException:  # NVBench would print any error and continue
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(3)

        return run

    for name, sizes in SIZES.items():
        one = bench.register(benchmark(name)).set_name(name)
        one.add_int64_axis("size", sizes)
        one.set_stopping_criterion("sample-count")
        one.set_criterion_param_int64("target-samples", SAMPLES)
        one.set_min_samples(SAMPLES)
        one.set_timeout(5.0)
    arguments = ["identical", "--devices", "0", "--quiet", "--jsonbin", str(out)]
    bench.run_all_benchmarks(arguments)


def main() -> None:
    parser = ArgumentParser(prog="python -m analysis.compare.trial.identical", description=__doc__)
    parser.add_argument("cubin", type=Path)
    parser.add_argument("out", type=Path, help="folder of the files, or one .json for one process")
    parser.add_argument("--seconds", type=float, default=40)
    arguments = parser.parse_args()
    if arguments.out.suffix == ".json":
        time_once(arguments.cubin, arguments.out)
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + arguments.seconds
    number, longest = 0, 0.0
    while time.monotonic() + longest < until:
        start = time.monotonic()
        file = arguments.out / f"{number:02}.json"
        command = [sys.executable, "-m", "analysis.compare.trial.identical", arguments.cubin, file]
        subprocess.run(list(map(str, command)), check=True, timeout=60)
        longest = max(longest, time.monotonic() - start)
        number += 1
    print(f"{number} files, {longest:.1f} s each at most")


if __name__ == "__main__":
    fail_in_one_line(main)
