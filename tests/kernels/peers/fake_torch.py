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
        """All work is done."""


class Torch:
    """`reduced` counts all-reduces, which NCCL refuses if `is_refused`."""

    def __init__(self, is_refused: bool) -> None:
        self.is_refused, self.reduced = is_refused, 0
        self.callers: dict[int, Stream] = {}

    def all_reduce(self, inputs: list[Any], outputs: list[Any], streams: list[Stream]) -> None:
        if self.is_refused:
            raise RuntimeError("unhandled system error")
        assert [stream.device for stream in streams] == list(range(len(inputs)))
        self.reduced += 1
        for output in outputs:
            output[:] = np.sum(inputs, axis=0, dtype=np.int32)

    def external(self, stream: int, device: int) -> Stream:
        return self.callers.setdefault(stream, Stream(device))


def as_tensor(numbers: Any, device: str) -> np.ndarray:
    interface = numbers.__cuda_array_interface__
    (count,), (pointer, is_read_only) = interface["shape"], interface["data"]
    assert device.startswith("cuda:") and not is_read_only
    return bytes_at(pointer, 4 * count).view(interface["typestr"])


def install(monkeypatch: pytest.MonkeyPatch, is_refused: bool = False) -> Torch:
    """Have `import torch` find this one."""
    fake = Torch(is_refused)
    torch, cuda, nccl = (ModuleType(name) for name in ("torch", "torch.cuda", "torch.cuda.nccl"))
    vars(torch).update(cuda=cuda, as_tensor=as_tensor)
    vars(cuda).update(nccl=nccl, Stream=Stream, ExternalStream=fake.external, Event=Event)
    vars(cuda)["device"], vars(nccl)["all_reduce"] = nullcontext, fake.all_reduce
    for module in (torch, cuda, nccl):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return fake
