"""Results of a machine, their summaries, and intervals of figures."""

from analysis.base.statistics import Estimate, student
from analysis.results.collect import chosen, collect, fresh
from analysis.results.store.folders import machines
from analysis.results.tables.answers import (
    NEAR,
    WITHIN,
    Answer,
    Point,
    Spans,
    Times,
    all_answers,
    answer,
    factors,
    fresh_rows,
    link_rates,
    nearest,
)
from analysis.results.tables.summary import summarise
