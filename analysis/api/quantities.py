"""Quantities, ratios and intervals in words."""

from analysis.base.quantities import (
    INTERVAL,
    binary,
    digits,
    percent,
    quantity,
    quantity_interval,
    ratio,
    ratio_interval,
    runs_phrase,
    signed_percent,
    whole,
)
from analysis.base.statistics import SAME_WITHIN
