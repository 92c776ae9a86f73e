"""Measured answers on a page: the form, the rules of thumb, and the quality of both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping

from markupsafe import Markup

from analysis.base.quantities import percent, ratio, whole
from analysis.results.answers.judged import (
    CLOSE,
    CLOSE_TIME,
    Score,
    score_answers,
    score_constants,
    score_rule,
)
from analysis.results.answers.question import Question, Situation, questions_of
from analysis.site.charts.widgets import FORM, situations_of
from analysis.site.pages.html import PARTS, prose, table
from analysis.site.pages.page import Page, macro


@macro
def form(page: Page, caption: str, *names: str) -> Markup:
    """One form for some questions, with a table of each for readers without scripts.

    caption: one or two sentences below it
    names: `<study>/<question>`, in the order in which the form offers them
    """
    parts = []
    for name in names:
        path = page.staged.drawn / f"{name}{FORM}"
        if path.exists():
            data = json.loads(path.read_text())
            shown = table(data["rows"], numeric=())
            parts.append((f"charts/{name}{FORM}", data["name"], data["label"], shown))
    if not parts:
        raise page.missing("answers to any question")
    return PARTS.form(parts, page.root, caption)


def _asked(
    page: Page, studies: Iterable[str]
) -> Iterator[tuple[Question, Mapping[str, list[Situation]]]]:
    """Every question of these studies, and its situations by machine."""
    for facts in (page.staged.studies[name] for name in studies):
        for question in questions_of(facts.study):
            by_machine: dict[str, list[Situation]] = {}
            for here in situations_of(facts, question):
                by_machine.setdefault(here.machine, []).append(here)
            yield question, by_machine


@macro
def rules(page: Page, *studies: str) -> Markup:
    """Rules of thumb, and the share of measured cells in which each holds.

    studies: whose questions have the rules, in this order
    """
    rows: list[dict[str, object]] = []
    for question, by_machine in _asked(page, studies):
        for rule in question.rules:
            row: dict[str, object] = {"rule": prose(rule.says)}
            for machine, found in by_machine.items():
                row[page.inputs.called(machine)] = _held(score_rule(rule, found))
            rows.append(row)
    return table(rows, numeric=())


def _held(score: Score) -> str:
    """`97 % of 36 cells, at worst 1.12×`; empty if no cell was measured."""
    if not score.over_best:
        return ""
    near, cells = percent(score.near_best), f"{whole(score.cells)} cell{'s' * (score.cells > 1)}"
    return f"{near} of {cells}, at worst {ratio(score.worst)}"


@macro
def answer_quality(page: Page, *studies: str) -> Markup:
    """How often the answers name a way that is nearly the best in held-out cells, and its time.

    studies: whose questions are asked, in this order
    """
    rows: list[dict[str, object]] = []
    for question, by_machine in _asked(page, studies):
        for machine, found in by_machine.items():
            scores = {"these answers": score_answers(found)}
            for name, constants in question.constants.items():
                scores[name] = score_constants(constants, found)
            start = {"question": question.label, "machine": page.inputs.called(machine)}
            rows += [
                {**start, "by": name, **_scored(score)}
                for name, score in scores.items()
                if score.cells
            ]
    if not rows:
        return Markup("<p>No machine has measured the held-out cells yet.</p>")
    return table(rows)


def _scored(score: Score) -> dict[str, str]:
    return {
        "cells": whole(score.cells),
        f"way at most {CLOSE * 100:g} % slower than the best": percent(score.near_best),
        "at worst": ratio(score.worst) if score.over_best else "",
        f"its time within {CLOSE_TIME * 100:g} %": percent(score.near_time)
        if score.over_measured
        else "",
    }
