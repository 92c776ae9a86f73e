"""A chart as a picture that needs no script: an SVG of shapes and words, for both palettes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import vl_convert
from markupsafe import Markup

from analysis.site.charts.theme import COLUMN_PX, COLUMN_SIGNAL, LEGEND_COLUMNS, both_palettes

COLUMNS: Final = {"wide": COLUMN_PX, "narrow": 326}
"""Pixels of the column in windows of 1280 and of 390."""
SHAPES: Final = {"path", "line", "rect", "text"}
PLACED: Final = {"d", "transform", "x", "y", "dy", "x2", "y2", "width", "height"}
INHERITED: Final = (
    *("fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray"),
    *("font-family", "font-size", "font-style", "font-weight", "text-anchor"),
)
"""Attributes that a group gives to all in it."""
_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What stops vl-convert, and with it the process."""
_MOVED: Final = re.compile(r"translate\((-?[\d.]+)")
_WIDTH: Final = re.compile(r"h([\d.]+)")
_LONG: Final = re.compile(r"-?\d+\.\d{2,}(?:e-\d+)?")


@dataclass(frozen=True)
class Still:
    """A chart as it is before any choice is made.

    `specification` is its Vega file; the rows are those of the CSV file beside it.
    """

    specification: Path

    @cached_property
    def _vega(self) -> dict[str, Any]:
        vega: dict[str, Any] = json.loads(self.specification.read_text())
        name = self.specification.name.removesuffix(".vg.json")
        for data in vega["data"]:
            if data.pop("url", None):
                rows = self.specification.with_name(f"{name}.csv").read_text()
                data["values"] = _NOT_XML.sub(" ", rows)
        return vega

    @property
    def choices(self) -> list[dict[str, Any]]:
        """Vega's signals that are chosen by a select."""
        signals: list[dict[str, Any]] = self._vega["signals"]
        return [one for one in signals if one.get("bind", {}).get("input") == "select"]

    def pictures(self) -> dict[str, Markup]:
        """The pictures of `drawn`, by the name of the column."""
        return {name: self.drawn(px) for name, px in COLUMNS.items()}

    def drawn(self, column_px: int) -> Markup:
        """What Vega draws in a column of `column_px`; of that, shapes and words only: no links, no
        tooltips, nothing for scripts. Empty where they refer to others, as what is clipped does.

        What is too wide is brought down to the column as in assets/charts.js: first a legend, by
        having fewer columns, then the plot.
        """
        signals = {COLUMN_SIGNAL: column_px}
        root = self._draw(signals)
        for columns in LEGEND_COLUMNS:
            if max(_legend_ends(root), default=0) > column_px:
                root = self._draw(signals := {**signals, "legend_columns": columns})
        if (excess := math.ceil(float(root.attrib["width"])) - column_px) > 0:
            root = self._draw({**signals, COLUMN_SIGNAL: column_px - excess})
        if root.find(".//*[@id]") is not None:
            return Markup()
        svg = Element("svg", {key: root.attrib[key] for key in ("width", "height", "viewBox")})
        svg.extend(_kept(root))
        return Markup(ElementTree.tostring(svg, encoding="unicode"))

    def _draw(self, signals: Mapping[str, int]) -> Element:
        """All that Vega draws, with these values of its signals."""
        others = [one for one in self._vega["signals"] if one["name"] not in signals]
        given = [{"name": name, "value": value} for name, value in signals.items()]
        vega = {**self._vega, "config": both_palettes(), "signals": [*given, *others]}
        return ElementTree.fromstring(vl_convert.vega_to_svg(vega, allowed_base_urls=[]))


def _legend_ends(parent: Element, x: float = 0) -> Iterator[float]:
    """The right end of each legend, px; `parent` begins at `x`."""
    for child in parent:
        moved = _MOVED.match(child.get("transform", ""))
        left = x + (float(moved[1]) if moved else 0)
        yield from _legend_ends(child, left)
        if "role-legend" in parent.get("class", "").split():
            width = _WIDTH.search(child[0].get("d", ""))  # of its background
            yield left + (float(width[1]) if width else 0)


def _kept(parent: Element) -> list[Element]:
    """The children of `parent` that can be seen; groups that do nothing are replaced by theirs."""
    found = []
    for child in parent:
        name = child.tag.rpartition("}")[2]
        attributes = _attributes(child)
        if name in SHAPES and _is_seen(child):
            shape = Element(name, attributes)
            shape.text = child.text
            for line in child:
                ElementTree.SubElement(shape, "tspan", _attributes(line)).text = line.text
            found.append(shape)
        elif name in ("g", "a"):
            group = Element("g", attributes)
            group.extend(_kept(child))
            _share(group)
            found += [group] if group.attrib and len(group) else group
    return found


def _is_seen(shape: Element) -> bool:
    paints = {shape.get("fill", "none"), shape.get("stroke", "none")}
    return not paints <= {"none", "transparent"} and shape.get("opacity") != "0"


def _attributes(element: Element) -> dict[str, str]:
    """Those that are kept, without the ones that do nothing; px to a tenth."""
    placed = {
        key: _LONG.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), value)
        for key, value in element.attrib.items()
        if key in PLACED
    }
    if placed.get("transform") == "translate(0,0)":
        del placed["transform"]
    if element.get("opacity", "1") != "1":
        placed["opacity"] = element.attrib["opacity"]
    return placed | {key: element.attrib[key] for key in INHERITED if key in element.attrib}


def _share(group: Element) -> None:
    """Give `group` the attributes that all in it have alike."""
    for key in INHERITED:
        values = {child.get(key) for child in group}
        if len(group) > 1 and len(values) == 1 and (value := values.pop()):
            group.set(key, value)
            for child in group:
                del child.attrib[key]
