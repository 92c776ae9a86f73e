"""Replays the patterns of the allocator study and of this study, and reports memory for all."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from allocator.lib.patterns import PATTERNS as USUAL
from allocator.lib.patterns import MissingTrace, Pattern
from allocator.lib.replay import CppReplay, Reported
from analysis.api.measure import Operation, Skip
from analysis.api.study import Case, FieldError, Variant

from .patterns import ALONE, MORE_THREADS, PATTERNS, HostAhead, Limited

KNOWN: Final = {**USUAL, **PATTERNS, **ALONE, **MORE_THREADS}

SETTINGS: Final = {
    "torch_caching": "expandable_segments:False",
    "torch_expandable": "expandable_segments:True",
    "torch_roundup": "expandable_segments:False,roundup_power2_divisions:8",
}
"""Settings of PyTorch's allocator by variant, as in PYTORCH_ALLOC_CONF; all others have
defaults."""

AHEAD_REPEATS: Final = 5
"""Number of timings, and of warm-up replays, of a pattern in which the host runs ahead."""


MAX_WRITTEN_OPERATIONS: Final = 100_000
"""Maximum length of a tape whose check writes to every allocation. For longer tapes it checks
addresses only."""


class Workload:
    """The tapes of a case, and the operations that replay them on a variant."""

    def __init__(self, constants: Mapping[str, int], rng: np.random.Generator) -> None:
        del constants, rng  # tapes have fixed seeds, so that every round replays the same
        self._pattern = Pattern([])

    def prepare(self, case: Case) -> None:
        name = str(case["pattern"])
        if name not in KNOWN:
            raise FieldError(f"case {case.id}: pattern", f"one of {sorted(KNOWN)}", name)
        try:
            self._pattern = KNOWN[name]()
        except MissingTrace as reason:
            raise Skip(str(reason)) from reason

    def bind(self, variant: Variant, module: Any) -> Operation:
        if variant.name in SETTINGS:
            set_up_torch(SETTINGS[variant.name], self._pattern)
        return Replay(module, self._pattern, Reported.CALLS | Reported.MEMORY)


def set_up_torch(settings: str, pattern: Pattern) -> None:
    """Configure PyTorch's empty allocator; settings apply to segments that it makes from now on.
    Its limit is a fraction of the GPU's memory."""
    import torch

    torch.cuda.init()
    torch.cuda.empty_cache()
    torch.cuda.memory._set_allocator_settings(settings)
    total = torch.cuda.get_device_properties(0).total_memory
    share = pattern.limit / total if isinstance(pattern, Limited) else 1.0
    torch.cuda.set_per_process_memory_fraction(share, 0)


class Replay(CppReplay):
    """Tapes replayed by the C++ runner, with requested and allocated bytes as metrics."""

    def _renew(self) -> None:
        super()._renew()
        if isinstance(self._pattern, Limited):
            self._allocator.set_limit(0, self._pattern.limit)

    def launch(self, stream: int) -> None:
        """Replay once; running out of memory is a fault of the cell, not an error."""
        if self._runner.operations > MAX_WRITTEN_OPERATIONS:
            self._fault = None  # nothing is written where a replay was checked before
        try:
            super().launch(stream)
        except MemoryError as error:
            self._fault = str(error)

    def own_samples(self, stream: int, count: int) -> Mapping[str, Sequence[float]]:
        values = super().own_samples(stream, count)
        active = self._allocator.statistics()["peak_active"]
        return {**values, "active": [active], "requested": [self._peak_requested]}

    def _steady(self) -> float:
        if not isinstance(self._pattern, HostAhead):
            return super()._steady()
        self._renew()
        for _ in range(AHEAD_REPEATS):
            self._from_idle()
        self._allocator.reset_statistics()
        self._replays = AHEAD_REPEATS
        return statistics.median(self._from_idle() for _ in range(AHEAD_REPEATS))

    def _from_idle(self) -> float:
        """Seconds of a replay that begins with idle streams."""
        if self._on_gpu:
            from analysis.api.memory import synchronize

            for stream in self._streams:
                synchronize(stream)
        seconds: float = self._runner.run_after_other_work()
        return seconds
