"""Selection of the predictions that are judged: those of cases that the link or address translation
clearly limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from analysis.results.model.terms import TERMS, TRANSLATION
from analysis.study import Study, calibrating
from analysis.study.calibration import FITTED, INSIDE, OUTSIDE

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
