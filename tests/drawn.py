"""A check that a drawing is complete and legible at every width."""

from __future__ import annotations

import itertools
import re

from markupsafe import Markup

from analysis.site.pages.drawings import WIDTHS, Drawing
from analysis.site.pages.svg import LETTER_PX, Canvas

_ATTRIBUTES = re.compile(r' ([\w-]+)="([^"]*)"')
_BOX = re.compile(r"M(\S+) \S+h([\d.-]+)")
"""Start and width of a box."""


def assert_legible(drawing: Drawing) -> None:
    """No box and no words leave the canvas, and no words run into others on their line."""
    for width in WIDTHS.values():
        canvas = Canvas(width)
        drawing.draw(canvas)
        lines: dict[str, list[tuple[float, float]]] = {}
        for part in canvas.parts:
            kind, attributes, text = _parsed(part)
            boxes = _BOX.findall(attributes.get("d", ""))
            assert bool(boxes) == (kind == "path"), part
            for left, box in boxes:
                assert float(left) >= -1 and float(left) + float(box) <= width + 1, part
            if kind == "text" and "inside" not in attributes.get("class", ""):
                lines.setdefault(attributes["y"], []).append(_extent(attributes, text))
        for y, extents in lines.items():
            extents.sort()
            assert extents[0][0] >= -1 and extents[-1][1] <= width + 4, (drawing.title, y)
            apart = (one[1] <= other[0] for one, other in itertools.pairwise(extents))
            assert all(apart), (drawing.title, y)


def _parsed(part: Markup) -> tuple[str, dict[str, str], str]:
    """Name, attributes and text of an element."""
    head, _, text = part.partition(">")
    return head.split()[0][1:], dict(_ATTRIBUTES.findall(head)), text.partition("<")[0]


def _extent(attributes: dict[str, str], text: str) -> tuple[float, float]:
    """Start and end of a line of words in px, at most."""
    x, width = float(attributes["x"]), LETTER_PX * len(Markup(text).unescape())
    anchor = attributes.get("text-anchor", "start")
    start = x - width * {"start": 0, "middle": 0.5, "end": 1}[anchor]
    return start, start + width
