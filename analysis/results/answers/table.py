"""The table of all answers to a question, made once: the form of a page looks them up in it, and
programs read it. The command answers by the same entries. docs/contract.md describes the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from analysis.results.answers.question import FIGURES, Question, Situation
from analysis.results.answers.rule import NEAR, WITHIN, Answer, all_answers

FORMAT: Final = "hotpath-answers"
VERSION: Final = 1


def head(kind: str, question: Question) -> dict[str, Any]:
    """The keys that all files of answers have."""
    return {
        "format": kind,
        "version": VERSION,
        "question": question.name,
        "axes": [axis.name for axis in question.axes],
        "ways": {name: vars(way) for name, way in question.ways.items()},
        "within": WITHIN,
    }


def answer_table(question: Question, found: Sequence[Situation]) -> dict[str, Any]:
    """All answers in the situations, by the machine and the choices of each."""
    tables = []
    for here in found:
        answers, spans = all_answers(here.times, question.offered, question.shipped)
        tables.append(
            {
                "where": {**here.where, "machine": here.machine},
                "spans": spans,
                "answers": [entry(here, answer) for answer in answers],
                "cells": [(point, here.cell(point)) for point in here.times],
            }
        )
    rule = {"near": NEAR, "multiple": question.multiple}
    return {**head(FORMAT, question), **rule, "columns": [*FIGURES], "tables": tables}


def entry(here: Situation, found: Answer) -> dict[str, Any]:
    """An answer: its way and cells, the `lines` that say it, and a row of figures in words for each
    way measured in these cells, the fastest first."""
    return {
        "way": found.way,
        "cells": found.corners,
        "seconds": {way: [float(f"{s:.4g}") for s in found.seconds[way]] for way in found.seconds},
        "lines": here.lines(found),
        "rows": [[way, *here.figures(found, way).values()] for way in found.seconds],
    }
