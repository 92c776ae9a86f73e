"""How a process gets the allocator of a variant, and what that tells of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any, Self


@dataclass(frozen=True)
class Memory:
    """Bytes at most since the last reset, and calls of the driver that allocate and free memory."""

    reserved: int
    active: int
    driver_calls: int


class Spent:
    """Seconds in calls of the allocator while this is entered, and how many of them allocated; 0
    where nobody counts."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.allocations = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Allocator(ABC):
    """The one allocator of this process."""

    @abstractmethod
    def memory(self) -> Memory: ...

    @abstractmethod
    def reset(self) -> None:
        """Peaks become what there is now."""

    def counting(self) -> Spent:
        """What counts where this allocator can be counted."""
        return Spent()


class Native(Allocator):
    """PyTorch's own, with settings as in PYTORCH_ALLOC_CONF."""

    def __init__(self, settings: str) -> None:
        import torch

        torch.cuda.init()
        # By its newer name where that is: the older one then warns.
        change = getattr(torch._C, "_accelerator_setAllocatorSettings", None)
        (change or torch.cuda.memory._set_allocator_settings)(settings)
        self._cuda: Any = torch.cuda

    def memory(self) -> Memory:
        told = self._cuda.memory_stats()
        return Memory(
            told["reserved_bytes.all.peak"],
            told["allocated_bytes.all.peak"],
            told["num_device_alloc"] + told["num_device_free"],
        )

    def reset(self) -> None:
        self._cuda.reset_peak_memory_stats()


class Plugged(Allocator):
    """That of a built variant, at the path `module`."""

    def __init__(self, module: str) -> None:
        self._module = load(module)  # before anything is plugged in
        import torch

        memory = torch.cuda.memory
        own = memory.CUDAPluggableAllocator(module, "plug_allocate", "plug_free")
        for setter, address in self._module.HOOKS.items():
            getattr(own.allocator(), setter)(address)
        memory.change_current_allocator(own)
        torch.cuda.init()
        self._kept = own

    def memory(self) -> Memory:
        told = self._module.statistics()
        return Memory(told["peak_reserved"], told["peak_active"], told["driver_calls"])

    def reset(self) -> None:
        self._module.reset_statistics()

    def counting(self) -> Spent:
        return Counted(self._module)


class Counted(Spent):
    """By the built variant itself."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self._module = module

    def __enter__(self) -> Self:
        self._module.start_counting()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds, self.allocations = self._module.stop_counting()


def load(path: str) -> Any:
    """The built variant as a module."""
    loader = ExtensionFileLoader("variant", path)
    spec = spec_from_loader("variant", loader)
    assert spec is not None, "an .so file has a loader"
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def make(settings: str | None, module: str | None) -> Allocator:
    """PyTorch's own with `settings`, or that of the built variant at `module`."""
    return Plugged(module) if module is not None else Native(settings or "")
