"""How good answers and rules of thumb are, by measured cells.

A score has a row for each cell in which more than one way was measured: `over_best`, the time of
the chosen way over the best, NaN if none was chosen, and `over_measured`, the answer's time over
the measured one.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

import pandas as pd

from analysis.base.quantities import percent, ratio, whole
from analysis.results.answers.question import Question, Rule, Situation
from analysis.results.answers.rule import Point

CLOSE: Final = 0.1
"""Following an answer or a rule is right if its way is at most this share slower than the best."""
CLOSE_TIME: Final = 0.15
"""A time is right if it differs by at most this share."""
Choose = Callable[[Situation, Point], tuple[str, float]]
"""The way to take at a point, empty without one, and its predicted seconds, NaN if unknown."""


def by_answer(here: Situation, point: Point) -> tuple[str, float]:
    """Takes the way of the answer."""
    answer = here.answer(point)
    return (answer.way, answer.time_at(point, answer.way)) if answer else ("", math.nan)


def by_rules(*rules: Rule) -> Choose:
    """Takes the way of the first of the rules that applies."""

    def choose(here: Situation, point: Point) -> tuple[str, float]:
        values = here.question.values(point)
        ways = (rule.way for rule in rules if rule.applies(here.where, values))
        return next(ways, ""), math.nan

    return choose


def score(
    choose: Choose,
    found: Iterable[Situation],
    *,
    held_out: bool = True,
    among: Collection[str] = (),
) -> pd.DataFrame:
    """The score in measured cells, by default the held-out ones, compared with the ways `among`
    which one chooses, by default all that may be answers."""
    rows = []
    for here in found:
        for point, times in (here.held_out if held_out else here.times).items():
            ways = {way: times[way] for way in among or here.question.offered if way in times}
            if len(ways) > 1:
                way, predicted = choose(here, point)
                seconds, best = ways.get(way, math.nan), min(ways.values())
                rows.append((seconds / best, predicted / seconds))
    return pd.DataFrame(rows, columns=["over_best", "over_measured"], dtype=float)


def near_best(score: pd.DataFrame) -> float:
    """Share of the cells in which the way is within CLOSE of the best. Cells without an answer are
    among the others."""
    return float((score["over_best"] <= 1 + CLOSE).mean())


def rule_text(rule: Rule, found: Iterable[Situation]) -> str:
    """`97 % of 36 cells, at worst 1.12×`, of the measured cells that the rule is about and of which
    its way was measured; empty without any."""
    of_rule = score(by_rules(rule), found, held_out=False, among=rule.among)
    of_rule = of_rule.dropna(subset="over_best")
    if of_rule.empty:
        return ""
    cells = f"{whole(len(of_rule))} cell{'s' * (len(of_rule) > 1)}"
    return f"{percent(near_best(of_rule))} of {cells}, at worst {ratio(of_rule['over_best'].max())}"


def quality_rows(question: Question, found: Sequence[Situation]) -> Iterator[dict[str, str]]:
    """Scores in words, by their titles: of the answers, and of the question's constants."""
    choices = {name: by_rules(*rules) for name, rules in question.constants.items()}
    for name, choose in {"these answers": by_answer, **choices}.items():
        if (scored := score(choose, found)).empty:
            continue
        over = scored["over_best"].max()
        time = (scored["over_measured"].dropna() - 1).abs().le(CLOSE_TIME).mean()
        yield {
            "by": name,
            "cells": whole(len(scored)),
            f"way at most {CLOSE * 100:g} % slower than the best": percent(near_best(scored)),
            "at worst": "" if math.isnan(over) else ratio(over),
            f"its time within {CLOSE_TIME * 100:g} %": "" if math.isnan(time) else percent(time),
        }
