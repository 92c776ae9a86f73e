"""Results of a machine, and the answers that they give."""

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
