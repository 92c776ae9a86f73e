"""Which calibration cases are held back from the fit, to see what it predicts of them."""

from __future__ import annotations

from typing import Final

from analysis.study import Case, Study, Variant

INSIDE: Final = "inside"
"""Held back, and within the range of every key that is fitted."""
OUTSIDE: Final = "outside"
"""Held back, and beyond that range: the prediction extrapolates."""
FITTED: Final = ""


def held_back(study: Study, variant: Variant) -> list[str]:
    """How each case of the variant is held back; FITTED where it is not, as outside calibrations.

    OUTSIDE are all cases beyond the study's `fitted_range`. Of the others, in the order of
    study.yaml, one of every three is INSIDE.
    """
    if not study.calibrates:
        return [FITTED] * len(variant.cases)
    uses, within = [], 0
    for case in variant.cases:
        if not _in_range(study, case):
            uses.append(OUTSIDE)
            continue
        uses.append(INSIDE if is_third(within) else FITTED)
        within += 1
    return uses


def is_third(number: int) -> bool:
    """Whether the case of this number, from 0, is the one of three that is held back.

    It is the third of the first three, then the second of the next three, then the first, so that a
    key that alternates within three cases is not held back with the same value each time.
    """
    return (number + number // 3) % 3 == 2


def _in_range(study: Study, case: Case) -> bool:
    return all(
        low <= case.number(key) <= high
        for key, (low, high) in study.fitted_range.items()
        if key in case.values
    )
