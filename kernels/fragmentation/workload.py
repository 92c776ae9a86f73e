"""Replays the allocator study's patterns and those of this study, with their memory told of all."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from allocator.patterns import PATTERNS as USUAL
from allocator.patterns import MissingTrace, Pattern
from allocator.workload import FromCpp, Told
from analysis.api.measure import Operation, Skip
from analysis.api.study import Case, FieldError, Variant

from .patterns import ALONE, MORE_THREADS, PATTERNS, Ahead, Limited

KNOWN: Final = {**USUAL, **PATTERNS, **ALONE, **MORE_THREADS}

SETTINGS: Final = {
    "torch_caching": "expandable_segments:False",
    "torch_expandable": "expandable_segments:True",
    "torch_roundup": "expandable_segments:False,roundup_power2_divisions:8",
}
"""Of PyTorch's allocator, by variant, as in PYTORCH_ALLOC_CONF. What is not named is as it is where
nothing is set."""

AHEAD_REPEATS: Final = 5
"""Number of timings of a pattern in which the host runs ahead, and of replays before the first."""


MOST_WRITTEN: Final = 100_000
"""Operations up to which the check of a replay writes to every allocation. It looks at no more than
addresses where a tape is longer."""


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
        return Replay(module, self._pattern, Told.CALLS | Told.MEMORY)


def set_up_torch(settings: str, pattern: Pattern) -> None:
    """Give PyTorch's allocator its settings, which hold for segments that are made from now on; it
    has none from before. Its limit is a share of the GPU's memory."""
    import torch

    torch.cuda.init()
    torch.cuda.empty_cache()
    torch.cuda.memory._set_allocator_settings(settings)
    total = torch.cuda.get_device_properties(0).total_memory
    share = pattern.limit / total if isinstance(pattern, Limited) else 1.0
    torch.cuda.set_per_process_memory_fraction(share, 0)


class Replay(FromCpp):
    """Tapes replayed by the C++ runner, with the bytes that were asked for and handed out."""

    def _renew(self) -> None:
        super()._renew()
        if isinstance(self._pattern, Limited):
            self._allocator.set_limit(0, self._pattern.limit)

    def launch(self, stream: int) -> None:
        """As any replay; one that ends without memory is a fault and not an error."""
        if self._runner.operations > MOST_WRITTEN:
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
        if not isinstance(self._pattern, Ahead):
            return super()._steady()
        self._renew()
        for _ in range(AHEAD_REPEATS):
            self._from_idle()
        self._allocator.reset_statistics()
        self._replays = AHEAD_REPEATS
        return statistics.median(self._from_idle() for _ in range(AHEAD_REPEATS))

    def _from_idle(self) -> float:
        """Seconds of a replay that begins when its streams have nothing to do."""
        if self._on_gpu:
            from analysis.api.memory import synchronize

            for own in self._streams:
                synchronize(own)
        seconds: float = self._runner.run(1)
        return seconds
