"""Replays of allocators whose calls return a pointer object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from analysis.api.measure import Operation
from analysis.api.study import Variant

from . import workload


class Workload(workload.Workload):
    """The tapes of the study, replayed from Python."""

    def bind(self, variant: Variant, module: Any) -> Operation:
        return Replay(self._pattern, lambda: workload.raw_calls(module))


@dataclass(frozen=True)
class Held:
    """An allocation and its address."""

    allocation: Any
    pointer: int


@dataclass(frozen=True)
class Checked:
    """Calls that return the address as well."""

    calls: workload.Calls

    def allocate(self, size: int) -> Held:
        allocation = self.calls.allocate(size)
        return Held(allocation, allocation.ptr)

    def free(self, held: Held) -> None:
        self.calls.free(held.allocation)


class Replay(workload.PythonReplay):
    """A replay whose check looks up addresses, which its timing does not need."""

    def launch(self, stream: int) -> None:
        timed, self._calls = self._calls, Checked(self._calls)
        try:
            super().launch(stream)
        finally:
            self._calls = timed
