"""Results of a machine, their summaries, and intervals of figures."""

from analysis.base.statistics import Estimate, student
from analysis.results.store.runs import machines
from analysis.results.tables.answers import (
    NEAR,
    WITHIN,
    Answer,
    Point,
    Spans,
    Times,
    all_answers,
    answer,
    fresh_rows,
    link_rates,
    nearest,
)
