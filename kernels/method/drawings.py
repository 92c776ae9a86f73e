"""Rounds, runs and hosts: what a figure is the median of, and what its interval predicts."""

from __future__ import annotations

from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.drawings import Canvas, Drawing
from analysis.api.quantities import INTERVAL

VARIANTS: Final = {"first": "variant A", "second": "variant B", "third": "variant C"}
ROUND: Final = ("first", "third", "second", "third", "first", "second", "second", "third", "first")
"""Visits of one round, in random order."""
RUNS: Final = ((0.30, 0.36, 0.33), (0.46, 0.41, 0.50), (0.37, 0.42, 0.40))
"""Times of a variant in the rounds of each run, as shares of the axis."""
INTERVAL_ENDS: Final = (0.24, 0.66)
ROW_PX: Final = 26


def drawings(facts: StudyFacts) -> dict[str, Drawing]:
    """`runs`: from the visits of a round to a figure with its interval."""
    del facts
    title = "Rounds, runs and hosts"
    description = (
        "A round is a process. It checks every output, then visits all variants in random order."
        " A run is several rounds on one host. Its time is the median of its rounds. A figure is"
        f" the median of runs on different hosts, and its {INTERVAL} predicts the next run."
    )
    return {"runs": Drawing(title, description, _draw)}


def _draw(canvas: Canvas) -> None:
    y = canvas.legend(0, {"pale": "check of every output", **VARIANTS}) + 8
    y = _draw_round(canvas, y) + 22
    _draw_runs(canvas, y)


def _draw_round(canvas: Canvas, y: float) -> float:
    """The check and the visits of one process, from left to right. Returns its lower end."""
    canvas.words(0, y + 8, "A round: one process", "name")
    canvas.words(0, y + 23, "checks, then visits in random order", "quiet")
    y += 30
    pitch = canvas.width / (len(ROUND) + 2)
    canvas.box(0, y, 2 * pitch - 2, 16, "pale")
    for place, kind in enumerate(ROUND, start=2):
        canvas.box(place * pitch, y, pitch - 2, 16, kind)
    canvas.box(0, y, canvas.width - 2, 16, "outline")
    return y + 16


def _draw_runs(canvas: Canvas, y: float) -> None:
    """A row for each run with its rounds and their median, and below them the figure."""
    canvas.words(0, y + 8, "Runs: several rounds on one host", "name")
    canvas.words(0, y + 23, "times of variant A: rounds, and their median", "quiet")
    left = 92.0
    across = canvas.width - left - 6
    y += 40
    medians = []
    for number, rounds in enumerate(RUNS, start=1):
        canvas.words(0, y + 4, f"run on host {number}", "quiet")
        canvas.line(left, y, canvas.width - 6, y, "grid")
        for time in rounds:
            x = left + across * time
            canvas.line(x, y - 5, x, y + 5, "rule")
        medians.append(sorted(rounds)[len(rounds) // 2])
        canvas.dot(left + across * medians[-1], y, "first")
        y += ROW_PX
    figure = left + across * sorted(medians)[len(medians) // 2]
    low, high = (left + across * end for end in INTERVAL_ENDS)
    canvas.words(0, y + 14, "figure", "label")
    canvas.line(left, y - 6, canvas.width - 6, y - 6, "rule")
    canvas.line(low, y + 10, high, y + 10, "whisker")
    for end in (low, high):
        canvas.line(end, y + 5, end, y + 15, "whisker")
    canvas.dot(figure, y + 10, "first")
    canvas.words(0, y + 32, "the median of runs; interval: the next run", "quiet")
