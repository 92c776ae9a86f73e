"""Which predictions are judged: those where the link is clearly the limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from analysis.study import Study

JUDGED_MARGIN: Final = 1.2
"""Minimum ratio of the link's term to the next largest. Closer to their crossing, waiting for one
delays the other, and the time is longer than either."""
JUDGED_WITHIN: Final = 0.03
"""The largest residual of a correct prediction."""


def judged(model: pd.DataFrame) -> pd.Series[bool]:
    """Which rows of the model's table are judged."""
    return (model["binding"] == "link") & (model["margin"] >= JUDGED_MARGIN)


def calibrating(studies: Mapping[str, Study]) -> list[str]:
    """The studies that a machine's parameters are fitted to."""
    return [study.name for study in studies.values() if study.calibrates]


def uses(model: pd.DataFrame, studies: Mapping[str, Study]) -> list[str]:
    """The use of each row: `fitted`, `held back` from the fit, or only `predicted`."""
    fitted = calibrating(studies)
    return [
        "predicted" if study not in fitted else "held back" if held else "fitted"
        for study, held in zip(model["study"], model["held_back"], strict=True)
    ]
