"""Questions that a study's measured times answer."""

from analysis.results.answers.question import Axis, Choice, Question, Rule, Way
