"""Which predictions are put to the test: those where the link surely is what binds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pandas as pd

from analysis.study import Study

JUDGED_MARGIN: Final = 1.2
"""How many times the next term the link's must be. Nearer to their crossing, waiting for one delays
the other and the time is longer than either."""
JUDGED_WITHIN: Final = 0.03
"""The residual up to which a prediction counts as right."""


def judged(model: pd.DataFrame) -> pd.Series[bool]:
    """Which rows of the model's table count."""
    return (model["binding"] == "link") & (model["margin"] >= JUDGED_MARGIN)


def calibrating(studies: Mapping[str, Study]) -> list[str]:
    """The studies to whose results alone a machine's parameters are fitted."""
    return [study.name for study in studies.values() if study.calibrates]


def uses(model: pd.DataFrame, studies: Mapping[str, Study]) -> list[str]:
    """What each row was used for: `fitted`, `held back` from the fit, or only `predicted`."""
    fitted = calibrating(studies)
    return [
        "predicted" if study not in fitted else "held back" if held else "fitted"
        for study, held in zip(model["study"], model["held_back"], strict=True)
    ]
