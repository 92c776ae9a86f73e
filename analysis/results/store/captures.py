"""The capture of a variant that counts, among all that were taken of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from analysis.results.store.counters import CAPTURED
from analysis.results.store.keys import CapturedVariant, CaptureFile
from analysis.results.store.runs import Capture


@dataclass(frozen=True)
class Taken:
    """A variant's part of a capture; `is_fresh` if it is of today's code."""

    capture: Capture
    variant: CapturedVariant
    is_fresh: bool

    @property
    def is_captured(self) -> bool:
        return self.variant.status == CAPTURED

    @property
    def about(self) -> CaptureFile:
        return self.capture.about


def taken_of(
    captures: Iterable[Capture], key: tuple[str, str, str], kind: str, source_sha256: str | None
) -> Taken | None:
    """The capture of a kind of a machine's study's variant: one of today's code, else the newest;
    one that was not captured only where no other was."""
    machine, study, variant = key
    found = [
        Taken(one, entry, entry.source_sha256 == source_sha256)
        for one in captures
        if (one.about.machine, one.about.study, one.about.kind) == (machine, study, kind)
        if (entry := one.about.variants.get(variant))
    ]
    return max(found, key=lambda one: (one.is_captured, one.is_fresh, one.about.at), default=None)
