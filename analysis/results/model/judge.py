"""Which predictions are judged: those where the link, or address translation, clearly limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from analysis.results.model.held_back import FITTED, INSIDE, OUTSIDE
from analysis.results.model.terms import TERMS, TRANSLATION
from analysis.study import Study, calibrating

JUDGED_MARGIN: Final = 1.2
"""Minimum ratio of the largest term to the next. Closer to their crossing, waiting for one
delays the other, and the time is longer than either."""
JUDGED_WITHIN: Final = {TERMS[0]: 0.03, TRANSLATION: 0.05}
"""The largest residual of a correct prediction, by the term that binds."""
PREDICTED: Final = "predicted"
OF_CALIBRATION: Final = {FITTED: "fitted", INSIDE: "interpolated", OUTSIDE: "extrapolated"}
"""By how a calibration's case is held back."""
USES: Final = (PREDICTED, *OF_CALIBRATION.values())


LINK: Final = TERMS[0]


def judged(model: pd.DataFrame) -> pd.Series[bool]:
    """Which rows of the model's table are judged."""
    return model["binding"].isin(JUDGED_WITHIN) & (model["margin"] >= JUDGED_MARGIN)


def uses(model: pd.DataFrame, studies: Mapping[str, Study]) -> list[str]:
    """The use of each row, one of USES."""
    fitted = calibrating(studies)
    return [
        OF_CALIBRATION[held] if study in fitted else PREDICTED
        for study, held in zip(model["study"], model["held_back"], strict=True)
    ]
