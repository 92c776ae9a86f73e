"""The cases of a calibrating study: those that the model is fitted to, and those held back."""

from __future__ import annotations

from typing import Final

from analysis.study.description import Study, Variant

INSIDE: Final = "inside"
"""Held back, and within the range of every key that is fitted."""
OUTSIDE: Final = "outside"
"""Held back, and beyond that range: the prediction extrapolates."""
FITTED: Final = ""
MIN_LINK_CASES: Final = 24
MIN_WALK_CASES: Final = 21
"""Minimum number of fitted cases: three for each parameter of the link, or of translation."""


def held_back(study: Study, variant: Variant) -> list[str]:
    """How each case of the variant is held back; FITTED where it is not, as outside calibrations.

    OUTSIDE are all cases beyond the study's `fitted_range`. Of the others, in the order of
    study.yaml, one of every three is INSIDE: the third of the first three, then the second of the
    next three, then the first. So a key that alternates within three cases is not held back with
    the same value each time.
    """
    if not study.calibrates:
        return [FITTED] * len(variant.cases)
    uses: list[str] = []
    for case in variant.cases:
        ranges = (item for item in study.fitted_range.items() if item[0] in case.values)
        if not all(low <= case.number(key) <= high for key, (low, high) in ranges):
            uses.append(OUTSIDE)
        else:
            number = len(uses) - uses.count(OUTSIDE)
            uses.append(INSIDE if (number + number // 3) % 3 == 2 else FITTED)
    return uses
