"""The cases of a calibrating study: those that the model is fitted to, and those held back."""

from __future__ import annotations

import itertools
from typing import Final

from analysis.base.errors import FieldError
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
    study.yaml, one of every three is INSIDE.
    """
    if not study.calibrates:
        return [FITTED] * len(variant.cases)
    uses, within = [], itertools.count()
    for case in variant.cases:
        ranges = (item for item in study.fitted_range.items() if item[0] in case.values)
        if not all(low <= case.number(key) <= high for key, (low, high) in ranges):
            uses.append(OUTSIDE)
        else:
            uses.append(INSIDE if is_third(next(within)) else FITTED)
    return uses


def is_third(number: int) -> bool:
    """Whether the case of this number, from 0, is the one of three that is held back.

    It is the third of the first three, then the second of the next three, then the first, so that a
    key that alternates within three cases is not held back with the same value each time.
    """
    return (number + number // 3) % 3 == 2


def fits_walks(study: Study) -> bool:
    """Whether a calibrating study determines address translation, and not the link: its cases say
    how large their pool is."""
    return any("pool_bytes" in (variant.link or {}) for variant in study.variants)


def check_calibration(study: Study, where: str) -> None:
    """FieldError if the default grid of a calibrating study has too few fitted cases. A default run
    would leave the machine without a model."""
    fitted = sum(
        use == FITTED and case in variant.in_grid("default")
        for variant in study.variants
        if variant.link is not None
        for case, use in zip(variant.cases, held_back(study, variant), strict=True)
    )
    least = MIN_WALK_CASES if fits_walks(study) else MIN_LINK_CASES
    if study.calibrates and fitted < least:
        expected = f"at least {least} fitted cases in the default grid"
        raise FieldError(f"{where}: calibrates", expected, fitted)
