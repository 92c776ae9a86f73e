"""SVG that pages embed: elements, and a canvas to draw on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final

from markupsafe import Markup

LETTER_PX: Final = 5.9
"""Mean width of a letter of a canvas's words, at most."""
DOT_PX: Final = 3.2
"""Radius of a dot."""


def element(name: str, *inner: object, **attributes: object) -> Markup:
    """An element; `text_anchor=` sets text-anchor, and attributes that are empty are left out.

    What is not Markup is escaped; numbers are written to a tenth of a pixel.
    """
    given = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    written = (
        Markup(' {}="{}"').format(key, f"{value:.1f}" if isinstance(value, float) else value)
        for key, value in given.items()
        if value != ""
    )
    content = Markup().join(Markup("{}").format(part) for part in inner)
    return Markup("<{0}{1}>{2}</{0}>").format(name, Markup().join(written), content)


@dataclass
class Canvas:
    """A drawing `width` px wide that grows downwards. Coordinates are px from the top left.

    `kind` is a class of assets/drawings.css, which has the colours of both palettes.
    """

    width: float
    height: float = 0.0
    _drawn: list[tuple[str | None, Markup]] = field(default_factory=list)
    """Elements; of boxes their kind and their outline."""

    @property
    def parts(self) -> list[Markup]:
        """The elements drawn. Boxes of one kind in a row are one: every element slows the page."""
        found: list[Markup] = []
        for kind, run in itertools.groupby(self._drawn, key=itemgetter(0)):
            parts = [part for _, part in run]
            boxes = element("path", d=Markup().join(parts), class_=kind)
            found += parts if kind is None else [boxes]
        return found

    def box(self, x: float, y: float, width: float, height: float, kind: str = "") -> None:
        self.height = max(self.height, y + height)
        outline = f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}H{x:.1f}z"
        self._drawn.append((kind, Markup(outline)))

    def words(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """One line of text, its baseline at `y`."""
        self._add(y + 3, "text", text, x=x, y=y, class_=kind, text_anchor=anchor)

    def line(self, x: float, y: float, to_x: float, to_y: float, kind: str = "") -> None:
        self._add(max(y, to_y), "line", x1=x, y1=y, x2=to_x, y2=to_y, class_=kind)

    def curve(self, places: Sequence[tuple[float, float]], kind: str = "") -> None:
        """A line through `places`."""
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        self._add(max(y for _, y in places), "polyline", points=points, class_=kind)

    def dot(self, x: float, y: float, kind: str = "") -> None:
        self._add(y + DOT_PX, "circle", cx=x, cy=y, r=DOT_PX, class_=kind)

    def legend(self, y: float, entries: dict[str, str]) -> float:
        """A swatch and a name for each kind; returns where the next thing may begin."""
        x = 0.0
        for kind, name in entries.items():
            needed = 16 + LETTER_PX * len(name)
            if x and x + needed > self.width:
                x, y = 0.0, y + 16
            self.box(x, y, 11, 11, kind)
            self.words(x + 15, y + 9, name, "quiet")
            x += needed + 10
        return y + 22

    def _add(self, bottom: float, name: str, *inner: object, **attributes: object) -> None:
        self.height = max(self.height, bottom)
        self._drawn.append((None, element(name, *inner, **attributes)))
