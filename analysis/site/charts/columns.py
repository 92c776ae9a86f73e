"""Times that deliver the payload of a case."""

from __future__ import annotations

from typing import Final

from analysis.study import Case

WHOLE: Final = ("gpu_time", "host_time")
"""Clocks that every study means alike: until the operation is complete."""


def delivered_bytes(case: Case, metric: str) -> int:
    """The payload that a time delivers: none if it is a part of the operation, as a CPU time is."""
    return case.payload_bytes if metric in WHOLE else 0
