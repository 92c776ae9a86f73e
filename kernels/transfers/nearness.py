"""Distances between a question and measured cells."""

from __future__ import annotations


def factors(*axes: tuple[float, float]) -> tuple[float, ...]:
    """Factors between the two values on each axis, the largest first: their order is that of the
    distances."""
    return tuple(sorted((max(one / other, other / one) for one, other in axes), reverse=True))
