"""An all-reduce of several GPUs by PyTorch's NCCL, in one process.

NVLink multicast is out of this study, so NCCL does without it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.api.measure import Skip
from kernels.common.outputs import POISON, wrong_row
from kernels.common.shared_pool import Buffers

from .outputs import GUARD_ROWS, Output, touched
from .pools import Pool

os.environ["NCCL_NVLS_ENABLE"] = "0"  # NCCL reads it at its first use

TURNS = 16
"""All-reduces of a neighbour, which take longer than a gather of as many bytes from the host."""


class DeviceNumbers:
    """int32 [count] in GPU memory, for PyTorch."""

    def __init__(self, pointer: int, count: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "<i4",
            "data": (pointer, False),
            "version": 3,
        }


class AllReduce:
    """An all-reduce of the first rows of each GPU's pool, as int32.

    Its streams have the highest priority, so that its few blocks come next where a gather has
    filled the SMs.
    """

    def __init__(self, terms: Sequence[Pool], sums: Sequence[Output], buffers: Buffers) -> None:
        """Skip if NCCL cannot reduce over these GPUs."""
        import torch
        from torch.cuda import nccl

        self._nccl = nccl
        self._terms, self._sums, self._buffers = terms, sums, buffers
        self._torch = torch
        rows, self._row_bytes = sums[0].shape
        self._rows = rows - GUARD_ROWS
        self._inputs = [self._numbers(gpu, term.pointer) for gpu, term in enumerate(terms)]
        self._outputs = [self._numbers(gpu, total.pointer) for gpu, total in enumerate(sums)]
        cuda = torch.cuda
        self._streams = [cuda.Stream(device=gpu, priority=-1) for gpu in range(len(terms))]
        self._begun, self._done = cuda.Event(), [cuda.Event() for _ in terms]
        try:
            self._enqueue(1)  # NCCL connects the GPUs at its first use
        except RuntimeError as error:
            raise Skip(f"NCCL: {error}") from error
        for stream in self._streams:
            stream.synchronize()

    def _numbers(self, gpu: int, pointer: int) -> Any:
        numbers = DeviceNumbers(pointer, self._rows * self._row_bytes // 4)
        with self._torch.cuda.device(gpu):
            return self._torch.as_tensor(numbers, device=f"cuda:{gpu}")

    def _enqueue(self, turns: int) -> None:
        for _ in range(turns):
            self._nccl.all_reduce(self._inputs, self._outputs, streams=self._streams)
        for stream, done in zip(self._streams, self._done, strict=True):
            done.record(stream)

    def launch(self, stream: int) -> None:
        """Reduce once, in the order of `stream`, a cudaStream_t of the first GPU."""
        self._begun.record(self._torch.cuda.ExternalStream(stream, device=0))
        for reducing in self._streams:
            reducing.wait_event(self._begun)
        self._enqueue(1)
        self.rejoin(stream)

    def start(self) -> None:
        """Begin repeated all-reduces."""
        self._enqueue(TURNS)

    def rejoin(self, stream: int) -> None:
        """Let `stream` wait for the remaining all-reduces."""
        caller = self._torch.cuda.ExternalStream(stream, device=0)
        for done in self._done:
            caller.wait_event(done)

    def start_again(self, stream: int) -> None:
        """Let `stream` wait for the remaining all-reduces, then begin the next ones beside it."""
        self.rejoin(stream)
        self.start()

    def poison(self) -> None:
        for total in self._sums:
            total.fill(POISON)

    def check(self) -> str | None:
        """None if every GPU has all sums, else the first difference. All GPUs must be done."""
        expected = self._expected()
        for gpu, total in enumerate(self._sums):
            landed = total.landed()
            if wrong := wrong_row(landed[: self._rows], expected):
                return f"sums: GPU {gpu}: {wrong}"
            if wrong := touched(landed, self._rows, len(landed)):
                return f"sums: GPU {gpu}: {wrong}"
        return None

    def _expected(self) -> Any:
        """Sums of int32, which wrap around, as uint8 [rows, row_bytes]."""
        shape = self._rows, self._row_bytes
        total = self._buffers.of("sums", shape)
        total[:] = 0
        term = self._buffers.of("expected", shape)
        for pool in self._terms:
            pool.gather(np.arange(self._rows), term)
            numbers = total.reshape(-1).view(np.int32)
            np.add(numbers, term.reshape(-1).view(np.int32), out=numbers)
        return total
