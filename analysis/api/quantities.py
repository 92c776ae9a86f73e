"""Quantities, ratios and intervals in words."""

from analysis.base.quantities import (
    INTERVAL,
    digits,
    percent,
    quantity,
    quantity_interval,
    ratio,
    ratio_interval,
    runs_phrase,
    whole,
)
from analysis.base.statistics import SAME_WITHIN
