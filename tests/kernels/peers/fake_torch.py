"""Stands in for PyTorch where neither it nor a GPU is available."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kernels.common.arrays import bytes_at


class Event:
    """Done when what is before it on its stream is, which here is at once."""

    def record(self, stream: Stream) -> None:
        self.of = stream


class Stream:
    """`waited` are the streams that it has waited for, in order."""

    def __init__(self, device: int, priority: int = 0) -> None:
        self.device, self.priority = device, priority
        self.waited: list[Stream] = []

    def wait_event(self, event: Event) -> None:
        self.waited.append(event.of)

    def synchronize(self) -> None:
        pass


class Torch:
    """`reduced` counts all-reduces; `fault` is what goes wrong with them."""

    def __init__(self, fault: str = "") -> None:
        self.fault, self.reduced = fault, 0
        self.callers: dict[int, Stream] = {}

    def all_reduce(self, inputs: list[Any], outputs: list[Any], streams: list[Stream]) -> None:
        if self.fault == "refused":
            raise RuntimeError("unhandled system error")
        assert [stream.device for stream in streams] == list(range(len(inputs)))
        self.reduced += 1
        for output in outputs:
            output[:] = np.sum(inputs, axis=0, dtype=np.int32)
        if self.fault == "one bit":
            outputs[-1][3] ^= 4
        if self.fault == "behind":
            bytes_at(outputs[-1].ctypes.data + outputs[-1].nbytes, 1)[:] = 0

    def external(self, stream: int, device: int) -> Stream:
        return self.callers.setdefault(stream, Stream(device))


def install(monkeypatch: pytest.MonkeyPatch, fault: str = "") -> Torch:
    """Have `import torch` find this one."""
    fake = Torch(fault)
    torch, cuda, nccl = (ModuleType(name) for name in ("torch", "torch.cuda", "torch.cuda.nccl"))
    parts: Any = torch, cuda, nccl
    parts[0].cuda, parts[1].nccl, parts[2].all_reduce = cuda, nccl, fake.all_reduce
    parts[0].as_tensor = as_tensor
    parts[1].Stream, parts[1].ExternalStream, parts[1].Event = Stream, fake.external, Event
    parts[1].device = nullcontext
    for module in parts:
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return fake


def as_tensor(numbers: Any, device: str) -> np.ndarray:
    interface = numbers.__cuda_array_interface__
    (count,), (pointer, is_read_only) = interface["shape"], interface["data"]
    assert not is_read_only
    assert device.startswith("cuda:")
    return bytes_at(pointer, 4 * count).view(interface["typestr"])
