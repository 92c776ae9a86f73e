"""Selects the allocator of a process, and reads its statistics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

from kernels.common.extension import load_extension


@dataclass(frozen=True)
class Memory:
    """Peak bytes since the last reset, and driver calls that allocate or free memory."""

    reserved: int
    active: int
    driver_calls: int


class TimeInCalls:
    """Seconds in calls of the allocator while this context is entered, and number of allocations; 0
    where calls are not counted."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.allocations = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Allocator(ABC):
    """The allocator of this process."""

    @abstractmethod
    def memory(self) -> Memory: ...

    @abstractmethod
    def reset(self) -> None:
        """Set peaks to current values."""

    def counting(self) -> TimeInCalls:
        """A context that counts calls where the allocator supports it."""
        return TimeInCalls()


class Native(Allocator):
    """PyTorch's allocator, with settings as in PYTORCH_ALLOC_CONF."""

    def __init__(self, settings: str) -> None:
        import torch

        torch.cuda.init()
        # Prefer the new name: where it exists, the old one warns.
        change = getattr(torch._C, "_accelerator_setAllocatorSettings", None)
        (change or torch.cuda.memory._set_allocator_settings)(settings)
        self._cuda: Any = torch.cuda

    def memory(self) -> Memory:
        stats = self._cuda.memory_stats()
        return Memory(
            stats["reserved_bytes.all.peak"],
            stats["allocated_bytes.all.peak"],
            stats["num_device_alloc"] + stats["num_device_free"],
        )

    def reset(self) -> None:
        self._cuda.reset_peak_memory_stats()


class Plugged(Allocator):
    """The allocator of a built variant, at the path `module`."""

    def __init__(self, module: str) -> None:
        self._module = load_extension(module)  # before another allocator is plugged in
        import torch

        memory = torch.cuda.memory
        pluggable = memory.CUDAPluggableAllocator(module, "plug_allocate", "plug_free")
        for setter, address in self._module.HOOKS.items():
            getattr(pluggable.allocator(), setter)(address)
        memory.change_current_allocator(pluggable)
        torch.cuda.init()
        self._kept = pluggable

    def memory(self) -> Memory:
        stats = self._module.statistics()
        return Memory(stats["peak_reserved"], stats["peak_active"], stats["driver_calls"])

    def reset(self) -> None:
        self._module.reset_statistics()

    def counting(self) -> TimeInCalls:
        return Counted(self._module)


class Counted(TimeInCalls):
    """Counts calls in the built variant."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self._module = module

    def __enter__(self) -> Self:
        self._module.start_counting()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds, self.allocations = self._module.stop_counting()


def make(settings: str | None, module: str | None) -> Allocator:
    """PyTorch's allocator with `settings`, or that of the built variant at `module`."""
    return Plugged(module) if module is not None else Native(settings or "")
