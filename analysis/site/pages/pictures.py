"""Small pictures of a study's steps, drawn when the site is built: SVG whose colours are those of
assets/home.css."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from analysis.site.charts.lines import REACH
from analysis.site.pages.svg import element


@dataclass(frozen=True)
class Mark:
    """A step: its value and the ends of its interval, NaN where there is none. `kind` is `step`,
    `beyond` or `stale`, a class of the style sheet, and `end` after it where the step is one of the
    two with names; `title` says what it is."""

    value: float
    low: float
    high: float
    kind: str
    title: str


WIDTH: Final = 300.0
HEIGHT: Final = 72.0


def columns(marks: Sequence[Mark], limit: float | None, label: str) -> Markup:
    """A column a mark, from zero, and a dashed line at `limit`; `label` says all that is shown.

    A mark without a value leaves its place empty. Intervals are cut as in the large charts.
    """
    known = [mark for mark in marks if mark.value == mark.value]
    highest = max([*(mark.value for mark in known), limit or 0.0])
    ends = [min(mark.high, REACH * highest) for mark in known if mark.high == mark.high]
    scale = (HEIGHT - TOP) / max([highest, *ends])
    shapes = []
    for x, width, mark in _places(marks):
        if math.isnan(mark.value):
            continue
        top = HEIGHT - max(mark.value * scale, 1.0)
        column = element("rect", x=x, y=top, width=width, height=HEIGHT - top)
        shapes.append(_titled(mark, column, _whisker(mark, x + width / 2, scale)))
    if limit is not None:
        shapes.append(_rule(HEIGHT - limit * scale))
    return _drawing(label, shapes)


def times(marks: Sequence[Mark], limit: float | None, label: str) -> Markup:
    """A dot a mark over a logarithmic axis, shorter times lower, and a dashed line at `limit`."""
    values = [mark.value for mark in marks if mark.value == mark.value] + ([limit] if limit else [])
    least, most = math.log(min(values)), math.log(max(values))
    span = (most - least) or 1.0

    def height(value: float) -> float:
        return TOP + (HEIGHT - 2 * TOP) * (most - math.log(value)) / span

    dots = [
        (x + width / 2, height(mark.value), mark)
        for x, width, mark in _places(marks)
        if mark.value == mark.value
    ]
    line = element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y, _ in dots))
    shapes = [line, *(_titled(mark, element("circle", cx=x, cy=y, r=4.0)) for x, y, mark in dots)]
    if limit is not None:
        shapes.append(_rule(height(limit)))
    return _drawing(label, shapes)


TOP: Final = 6.0
"""Free above the highest mark."""
GAP: Final = 0.28
"""Share of a column's place that stays empty."""
WIDEST: Final = 46.0


def _places(marks: Sequence[Mark]) -> list[tuple[float, float, Mark]]:
    """Left end and width of each mark's place."""
    place = WIDTH / len(marks)
    width = min(place * (1 - GAP), WIDEST)
    return [(index * place, width, mark) for index, mark in enumerate(marks)]


def _whisker(mark: Mark, x: float, scale: float) -> Markup:
    if math.isnan(mark.low) or math.isnan(mark.high):
        return Markup()
    top = max(HEIGHT - mark.high * scale, TOP)
    return element("line", x1=x, x2=x, y1=HEIGHT - mark.low * scale, y2=top)


def _rule(y: float) -> Markup:
    return element("line", x1=0.0, x2=WIDTH, y1=y, y2=y, class_="limit")


def _titled(mark: Mark, *shapes: Markup) -> Markup:
    return element("g", element("title", mark.title), *shapes, class_=mark.kind)


def _drawing(label: str, shapes: Sequence[Markup]) -> Markup:
    box = f"0 0 {WIDTH:g} {HEIGHT:g}"
    return element("svg", *shapes, class_="hp-steps", role="img", aria_label=label, viewBox=box)
