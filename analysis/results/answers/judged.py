"""How good answers and rules of thumb are, by measured cells.

A score has a row for each cell in which more than one way was measured: `over_best`, the time of
the chosen way over the best, NaN if none was chosen, and `over_measured`, the answer's time over
the measured one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import pandas as pd

from analysis.base.quantities import percent, ratio, whole
from analysis.results.answers.question import Question, Rule, Situation
from analysis.results.answers.rule import Point, Times

CLOSE: Final = 0.1
"""Following an answer or a rule is right if its way is at most this share slower than the best."""
CLOSE_TIME: Final = 0.15
"""A time is right if it differs by at most this share."""


def score_rule(rule: Rule, found: Iterable[Situation]) -> pd.DataFrame:
    """The score of a rule in the measured cells that it is about, if its way was measured."""
    return _scores(
        (ways[rule.way] / min(ways.values()), math.nan)
        for here in found
        for point, ways in _cells(here.times, rule.among or here.question.offered)
        if rule.way in ways and rule.applies(here.where, here.question.values(point))
    )


def score_answers(found: Iterable[Situation]) -> pd.DataFrame:
    """The score of the answers in held-out cells."""
    rows = []
    for here in found:
        for point, ways in _cells(here.held_out, here.question.offered):
            answer = here.answer(point)
            measured = ways.get(answer.way, math.nan) if answer else math.nan
            predicted = answer.time_at(point, answer.way) if answer else math.nan
            rows.append((measured / min(ways.values()), predicted / measured))
    return _scores(rows)


def score_constants(rules: Sequence[Rule], found: Iterable[Situation]) -> pd.DataFrame:
    """The score of the first of the rules that applies, in held-out cells."""
    rows = []
    for here in found:
        for point, ways in _cells(here.held_out, here.question.offered):
            values = here.question.values(point)
            way = next((rule.way for rule in rules if rule.applies(here.where, values)), "")
            rows.append((ways.get(way, math.nan) / min(ways.values()), math.nan))
    return _scores(rows)


def _cells(times: Times, among: Collection[str]) -> Iterator[tuple[Point, Mapping[str, float]]]:
    """The points with the times of `among`, if several of these were measured."""
    for point, measured in times.items():
        ways = {way: measured[way] for way in among if way in measured}
        if len(ways) > 1:
            yield point, ways


def _scores(rows: Iterable[tuple[float, float]]) -> pd.DataFrame:
    return pd.DataFrame([*rows], columns=["over_best", "over_measured"], dtype=float)


def near_best(score: pd.DataFrame) -> float:
    """Share of the cells in which the way is within CLOSE of the best. Cells without an answer are
    among the others."""
    return float((score["over_best"] <= 1 + CLOSE).mean())


def near_time(score: pd.DataFrame) -> float:
    """Share of the answers whose time is within CLOSE_TIME of the measured one; NaN without any."""
    return float((score["over_measured"].dropna() - 1).abs().le(CLOSE_TIME).mean())


def rule_text(rule: Rule, found: Iterable[Situation]) -> str:
    """`97 % of 36 cells, at worst 1.12×`; empty if no cell was measured."""
    score = score_rule(rule, found)
    if score.empty:
        return ""
    cells = f"{whole(len(score))} cell{'s' * (len(score) > 1)}"
    return f"{percent(near_best(score))} of {cells}, at worst {ratio(score['over_best'].max())}"


def quality_rows(question: Question, found: Sequence[Situation]) -> Iterator[dict[str, str]]:
    """Scores in words, by their titles: of the answers, and of the question's constants."""
    scores = {"these answers": score_answers(found)}
    scores |= {name: score_constants(of, found) for name, of in question.constants.items()}
    for name, score in scores.items():
        if score.empty:
            continue
        over, time = score["over_best"].max(), near_time(score)
        yield {
            "by": name,
            "cells": whole(len(score)),
            f"way at most {CLOSE * 100:g} % slower than the best": percent(near_best(score)),
            "at worst": "" if math.isnan(over) else ratio(over),
            f"its time within {CLOSE_TIME * 100:g} %": "" if math.isnan(time) else percent(time),
        }
