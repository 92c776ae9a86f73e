"""How good answers and rules of thumb are, by measured cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from analysis.results.answers.question import Rule, Situation
from analysis.results.answers.rule import Point

CLOSE: Final = 0.1
"""Following an answer or a rule is right if its way is at most this share slower than the best."""
CLOSE_TIME: Final = 0.15
"""A time is right if it differs by at most this share."""


@dataclass
class Score:
    """Times over the best of a cell, and of predicted times over measured ones."""

    over_best: list[float] = field(default_factory=list)
    over_measured: list[float] = field(default_factory=list)
    unanswered: int = 0

    @property
    def cells(self) -> int:
        return len(self.over_best) + self.unanswered

    @property
    def near_best(self) -> float:
        """Share of the cells in which the way is within CLOSE of the best, those without an answer
        among the others."""
        near = sum(over <= 1 + CLOSE for over in self.over_best)
        return near / max(self.cells, 1)

    @property
    def worst(self) -> float:
        return max(self.over_best, default=math.nan)

    @property
    def near_time(self) -> float:
        """Share of the answers whose time is within CLOSE_TIME of the measured one."""
        near = sum(abs(over - 1) <= CLOSE_TIME for over in self.over_measured)
        return near / max(len(self.over_measured), 1)


def applies(rule: Rule, here: Situation, point: Point) -> bool:
    """Whether the rule is about this point."""
    if any(here.where[name] not in options for name, options in rule.where.items()):
        return False
    names = [axis.name for axis in here.question.axes]
    value = dict(zip(names, point, strict=True))
    return all(low <= value[name] <= high for name, (low, high) in rule.bounds.items())


def score_rule(rule: Rule, situations: Iterable[Situation]) -> Score:
    """The rule in all measured cells that it is about, if its way and another one were measured."""
    score = Score()
    for here in situations:
        among = rule.among or here.question.offered
        for point, times in here.times.items():
            ways = {way: times[way] for way in among if way in times}
            if rule.way in ways and len(ways) > 1 and applies(rule, here, point):
                score.over_best.append(ways[rule.way] / min(ways.values()))
    return score


def score_answers(situations: Iterable[Situation]) -> Score:
    """The answers in all held-out cells, in which more than one way was measured."""
    score = Score()
    for here, point, ways in _held_out(situations):
        found = here.answer(point)
        if found is None or found.way not in ways:
            score.unanswered += 1
            continue
        score.over_best.append(ways[found.way] / min(ways.values()))
        score.over_measured.append(found.time_at(point, found.way) / ways[found.way])
    return score


def score_constants(rules: Sequence[Rule], situations: Iterable[Situation]) -> Score:
    """The first rule that fits in all held-out cells."""
    score = Score()
    for here, point, ways in _held_out(situations):
        rule = next((rule for rule in rules if applies(rule, here, point)), None)
        if rule is None or rule.way not in ways:
            score.unanswered += 1
        else:
            score.over_best.append(ways[rule.way] / min(ways.values()))
    return score


def _held_out(
    situations: Iterable[Situation],
) -> Iterator[tuple[Situation, Point, Mapping[str, float]]]:
    for here in situations:
        for point, times in here.held_out.items():
            ways = {way: times[way] for way in here.question.offered if way in times}
            if len(ways) > 1:
                yield here, point, ways
