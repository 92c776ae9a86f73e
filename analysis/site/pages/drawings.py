"""Drawings on a study's page: SVG files beside its code, or computed by its drawings.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.svg import Canvas, element
from analysis.site.pages.templates import macros
from analysis.toolchain.modules import load_python

SOURCE: Final = "drawings"
WIDTHS: Final = {"hp-wide": 680.0, "hp-narrow": 326.0}
"""Pixels, by the class that shows the drawing on wide or on narrow screens only."""


@dataclass(frozen=True)
class Drawing:
    """A picture of figures from the facts, without a script.

    `title` names it and `description` says what is seen, for those who do not see it. `draw` is
    called with a canvas of each width.
    """

    title: str
    description: str
    draw: Callable[[Canvas], None]


def study_drawings(facts: StudyFacts) -> Mapping[str, Drawing | None]:
    """What `drawings(facts)` of the study's drawings.py returns, by name; empty without one. None
    is a drawing without data: tables.py could not make its table, or nothing was measured."""
    if not (facts.study.folder / f"{SOURCE}.py").exists():
        return {}
    drawings: Mapping[str, Drawing | None] = load_python(facts.study, SOURCE).drawings(facts)
    return drawings


def figure(drawing: Drawing, name: str, caption: str) -> Markup:
    """`drawing` for wide and for narrow screens, with its caption; `name` begins its ids."""
    pictures = [_picture(drawing, f"{name}-{size}", size, width) for size, width in WIDTHS.items()]
    return macros("figure.html").drawing(pictures, caption)


def _picture(drawing: Drawing, name: str, size: str, width: float) -> Markup:
    canvas = Canvas(width)
    drawing.draw(canvas)
    return element(
        "svg",
        element("title", drawing.title, id=f"{name}-title"),
        element("desc", drawing.description, id=f"{name}-desc"),
        *canvas.parts,
        class_=size,
        viewBox=f"-1 0 {width + 2:.0f} {canvas.height + 2:.0f}",
        width=f"{width:.0f}",
        role="img",
        data_search_exclude="true",
        aria_labelledby=f"{name}-title",
        aria_describedby=f"{name}-desc",
    )
