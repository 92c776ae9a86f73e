"""Selection of the calibration cases that are held back from the fit, and of the predictions that
are judged: those of cases that the link or address translation clearly limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from analysis.results.model.terms import TERMS, TRANSLATION
from analysis.study import Case, Study, Variant, calibrating

INSIDE: Final = "inside"
"""Held back, and within the range of every key that is fitted."""
OUTSIDE: Final = "outside"
"""Held back, and beyond that range: the prediction extrapolates."""
FITTED: Final = ""
LINK: Final = TERMS[0]
JUDGED_MARGIN: Final = 1.2
"""Minimum ratio of the largest term to the next. Closer to their crossing, waiting for one
delays the other, and the time is longer than either."""
JUDGED_WITHIN: Final = {LINK: 0.03, TRANSLATION: 0.05}
"""The largest residual of a correct prediction, by the term that binds."""
PREDICTED: Final = "predicted"
OF_CALIBRATION: Final = {FITTED: "fitted", INSIDE: "interpolated", OUTSIDE: "extrapolated"}
"""Use of a calibration's case in the fit."""
USES: Final = (PREDICTED, *OF_CALIBRATION.values())


def judged(model: pd.DataFrame) -> pd.Series[bool]:
    """Mask of the judged rows of the model's table."""
    return model["binding"].isin(JUDGED_WITHIN) & (model["margin"] >= JUDGED_MARGIN)


def uses(model: pd.DataFrame, studies: Mapping[str, Study]) -> list[str]:
    """The use of each row, one of USES."""
    fitted = calibrating(studies)
    return [
        OF_CALIBRATION[held] if study in fitted else PREDICTED
        for study, held in zip(model["study"], model["held_back"], strict=True)
    ]


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
