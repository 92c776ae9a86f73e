"""The answers to a question as files, whose keys docs/contract.md describes.

The table of all answers is made once: the form of a page looks them up in it, and programs read it.
The command answers by the same entries. The rows of a summary, for an engine, are the leaves of a
tree that is grown greedily: the leaf that loses the most time beyond 5 % over the answers is split
where its halves lose least.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

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


SUMMARY: Final = "hotpath-answers-summary"
MAX_ROWS: Final = 30
"""Maximum number of rows of a question."""
UNMEASURED: Final = 2.0
"""A way that was not measured in a cell counts as this many times as slow as the answer."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """Measured `cells`, the options of choices and the numbers on axes; `over` [cells, ways], the
    time of every offered way over that of the answer; and `spans`, on each axis: from where a
    previous choice of the way is kept, where the row begins and ends, and to where it is kept."""

    cells: pd.DataFrame
    over: np.ndarray
    spans: Mapping[str, tuple[float, float, float, float]]

    @property
    def way(self) -> int:
        """The place of the way that loses the least time."""
        return int(_late(self.over).argmin())

    @property
    def lateness(self) -> float:
        return float(_late(self.over).min())

    def halves(self) -> list[Leaf]:
        """The halves of the best split; none for a single cell. A border on an axis is halfway
        between the measured cells beside it, which end the bands."""
        splits = []
        for name, column in self.cells.items():
            for value in sorted({*column}):
                is_first = (column <= value if name in self.spans else column == value).to_numpy()
                if not is_first.all():
                    mixtures = [_mixture(self.over[mask]) for mask in (is_first, ~is_first)]
                    splits.append((np.sum(mixtures, axis=0).tolist(), str(name), is_first))
        if not splits:
            return []
        _, axis, is_first = min(splits, key=lambda split: split[0])
        below, above = (
            replace(self, cells=self.cells[mask], over=self.over[mask])
            for mask in (is_first, ~is_first)
        )
        if axis not in self.spans:
            return [below, above]
        low, high = below.cells[axis].max(), above.cells[axis].min()
        border = math.sqrt(low) * math.sqrt(high)
        kept_from, begin, end, kept_to = self.spans[axis]
        return [
            replace(below, spans={**self.spans, axis: (kept_from, begin, border, high)}),
            replace(above, spans={**self.spans, axis: (low, border, end, kept_to)}),
        ]

    def row(self, question: Question) -> dict[str, Any]:
        """The row of the summary."""
        spans = {axis: [*map(round, span)] for axis, span in self.spans.items()}
        return {
            "way": question.offered[self.way],
            "where": {one.name: sorted({*self.cells[one.name]}) for one in question.choices},
            "range": {axis: span[1:3] for axis, span in spans.items()},
            "keep": {axis: span[::3] for axis, span in spans.items()},
        }


def _late(over: np.ndarray) -> Any:
    """Time of each way beyond 5 % over the answers of the cells."""
    return np.maximum(over - 1 - WITHIN, 0).sum(axis=0)


def _mixture(over: np.ndarray) -> tuple[float, float]:
    """The time lost by the best way, then how mixed the answers of the cells are."""
    counts = (over == 1).sum(axis=0)
    return _late(over).min(), len(over) - (counts**2).sum() / len(over)


def summarised(question: Question, found: Sequence[Situation]) -> dict[str, Any]:
    """At most MAX_ROWS rows for an engine, as docs/contract.md describes them."""
    ways, cells, over = question.offered, [], []
    for here in found:
        for point, times in here.times.items():
            seconds = np.array([times.get(way, math.nan) for way in ways])
            best = times[here.answer_in(point).way]
            cells.append({**here.where, **question.values(point)})
            over.append(np.nan_to_num(seconds / best, nan=UNMEASURED))
    table = pd.DataFrame(cells)
    numbers = {axis.name: table[axis.name] for axis in question.axes}
    ends = {name: (of.min() / NEAR, of.max() * NEAR) for name, of in numbers.items()}
    spans = {name: (low, low, high, high) for name, (low, high) in ends.items()}
    leaves = [Leaf(table, np.array(over), spans)]
    while len(leaves) < MAX_ROWS:
        worst = max(leaves, key=lambda leaf: leaf.lateness)
        if not worst.lateness or not (halves := worst.halves()):
            break
        leaves.remove(worst)
        leaves += halves
    leaves.sort(key=lambda leaf: -len(leaf.over))
    chosen = np.concatenate([leaf.over[:, leaf.way] for leaf in leaves])
    return {
        **head(SUMMARY, question),
        "cells": len(chosen),
        "agree_within_5_percent": round(float((chosen <= 1 + WITHIN).mean()), 4),
        "agree_within_10_percent": round(float((chosen <= 1 + 2 * WITHIN).mean()), 4),
        "rows": [leaf.row(question) for leaf in leaves],
    }
