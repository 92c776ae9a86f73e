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

from analysis.results.answers.question import FIGURES, Question, Situation
from analysis.results.answers.rule import NEAR, WITHIN, Answer, answer

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
        answers, spans = here.table
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

TIE: Final = math.log1p(WITHIN)
"""Of two ways within this distance of logarithms, either may be kept."""


@dataclass(frozen=True, eq=False)
class Leaf:
    """The cells at `places` with the options of each choice, and the ends on each axis: of the row,
    and of the band in which a previous choice of its way is kept."""

    places: np.ndarray
    options: Mapping[int, Sequence[str]]
    ends: Mapping[int, tuple[float, float]]
    kept: Mapping[int, tuple[float, float]]


class Tree:
    """Leaves of measured cells: `cells` [cells, features], options before numbers, and `over`
    [cells, ways], the time of every offered way over that of the answer."""

    def __init__(self, question: Question, situations: Sequence[Situation]) -> None:
        self._question, self.ways = question, question.offered
        cells, over = [], []
        for here in situations:
            for point, times in here.times.items():
                found = answer(here.times, self.ways, [point])
                assert found is not None, "a measured point has an answer"
                seconds = [times.get(way, UNMEASURED * times[found.way]) for way in self.ways]
                cells.append([*here.where.values(), *point])
                over.append(np.array(seconds) / times[found.way])
        self.over, self._cells = np.array(over), np.array(cells, dtype=object)
        self._is_best = self.over == 1
        choices = len(question.choices)
        columns = dict(enumerate(self._cells.T))
        options = {n: sorted({*columns.pop(n)}) for n in range(choices)}
        ends = {n: (column.min() / NEAR, column.max() * NEAR) for n, column in columns.items()}
        self.leaves = [Leaf(np.arange(len(cells)), options, ends, ends)]
        while len(self.leaves) < MAX_ROWS:
            leaf = max(self.leaves, key=self.lateness)
            halves = self._halves(leaf) if self.lateness(leaf) else None
            if halves is None:
                break
            self.leaves.remove(leaf)
            self.leaves += halves

    def way(self, leaf: Leaf) -> int:
        """The place of the way that loses the least time."""
        return int(self._late(leaf.places).argmin())

    def lateness(self, leaf: Leaf) -> float:
        return float(self._late(leaf.places).min())

    def _late(self, places: np.ndarray) -> np.ndarray:
        """Time of each way beyond 5 % over the answers of the cells."""
        late: np.ndarray = np.maximum(self.over[places] - 1 - WITHIN, 0).sum(axis=0)
        return late

    def _mixture(self, places: np.ndarray) -> tuple[float, float]:
        """The time lost by the best way, then how mixed the answers of the cells are."""
        counts = self._is_best[places].sum(axis=0)
        return self._late(places).min(), len(places) - (counts**2).sum() / len(places)

    def _halves(self, leaf: Leaf) -> list[Leaf] | None:
        """The halves of the best split; None for a single cell."""
        splits = []
        for n, column in enumerate(self._cells[leaf.places].T):
            values = sorted({*column})
            is_choice = n in leaf.options
            for value in values[: len(values) if is_choice and len(values) > 1 else -1]:
                is_first = column == value if is_choice else column <= value
                halves = leaf.places[is_first], leaf.places[~is_first]
                splits.append((np.sum([*map(self._mixture, halves)], axis=0).tolist(), n, halves))
        if not splits:
            return None
        _, n, halves = min(splits, key=lambda split: split[0])
        if n in leaf.options:
            firsts = {*self._cells[halves[0], n]}
            options = (
                [one for one in leaf.options[n] if one in firsts],
                [one for one in leaf.options[n] if one not in firsts],
            )
            return [
                replace(leaf, places=places, options={**leaf.options, n: kept})
                for places, kept in zip(halves, options, strict=True)
            ]
        low, border, high = self._border(n, *halves)
        (begin, end), (first, last) = leaf.ends[n], leaf.kept[n]
        parts = ((begin, border), (first, high)), ((border, end), (low, last))
        return [
            replace(leaf, places=places, ends={**leaf.ends, n: ends}, kept={**leaf.kept, n: kept})
            for places, (ends, kept) in zip(halves, parts, strict=True)
        ]

    def _border(
        self, axis: int, below: np.ndarray, above: np.ndarray
    ) -> tuple[float, float, float]:
        """Where on an axis the ways of two halves are equally fast; before and behind that, where
        one is 5 % faster: by lines between the logarithms of the cells beside the border.
        """
        start, stop = self._cells[below, axis].max(), self._cells[above, axis].min()
        ways = [int(self._late(half).argmin()) for half in (below, above)]
        leads = []  # of the first way over the second, below and above
        for half, edge in ((below, start), (above, stop)):
            first, second = np.log(self.over[half[self._cells[half, axis] == edge]][:, ways]).T
            leads.append(float(np.median(second - first)))
        span = leads[0] - leads[1]
        shares = [(leads[0] + by) / span if span > 0 else 0.5 for by in (-TIE, 0, TIE)]
        low, border, high = (start * (stop / start) ** min(max(share, 0), 1) for share in shares)
        return low, border, high


def _row(question: Question, tree: Tree, leaf: Leaf) -> dict[str, Any]:
    axes = dict(enumerate((axis.name for axis in question.axes), len(question.choices)))
    return {
        "way": tree.ways[tree.way(leaf)],
        "where": {one.name: leaf.options[n] for n, one in enumerate(question.choices)},
        "range": {name: [*map(round, leaf.ends[n])] for n, name in axes.items()},
        "keep": {name: [*map(round, leaf.kept[n])] for n, name in axes.items()},
    }


def summarised(question: Question, situations: Sequence[Situation]) -> dict[str, Any]:
    """At most MAX_ROWS rows for an engine, as docs/contract.md describes them."""
    tree = Tree(question, situations)
    leaves = sorted(tree.leaves, key=lambda leaf: -len(leaf.places))
    over = np.concatenate([tree.over[leaf.places, tree.way(leaf)] for leaf in leaves])
    return {
        **head(SUMMARY, question),
        "cells": len(over),
        "agree_within_5_percent": round(float((over <= 1 + WITHIN).mean()), 4),
        "agree_within_10_percent": round(float((over <= 1 + 2 * WITHIN).mean()), 4),
        "rows": [_row(question, tree, leaf) for leaf in leaves],
    }
