"""Questions that a study's measured times answer."""

from analysis.results.answers.question import (
    ARRIVED,
    Axis,
    Choice,
    Question,
    Rule,
    Situation,
    Way,
    questions_of,
)
from analysis.results.answers.rule import Point
