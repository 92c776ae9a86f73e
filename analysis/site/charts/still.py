"""A chart as a picture that needs no script: an SVG file of shapes and words, for both palettes."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import vl_convert

from analysis.site.charts.theme import (
    COLUMN_PX,
    COLUMN_SIGNAL,
    LEGEND_COLUMNS,
    SELECTED,
    both_palettes,
)

COLUMNS: Final = {"wide": COLUMN_PX, "narrow": 326}
"""Pixels of the column in windows of 1280 and of 390."""
SVG: Final = "http://www.w3.org/2000/svg"
SHAPES: Final = {"path", "line", "rect", "text", "stop"}
GROUPS: Final = {"g", "a", "defs", "clipPath", "linearGradient"}
REFERRING: Final = ("id", "clip-path", "offset", "stop-color", "x1", "y1")
"""Attributes of clips and gradients, and of groups that refer to them."""
PLACED: Final = {"d", "transform", "x", "y", "dy", "x2", "y2", "width", "height"}
INHERITED: Final = (
    *("fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray"),
    *("font-family", "font-size", "font-style", "font-weight", "text-anchor"),
)
"""Attributes that a group gives to all in it."""
UNSEEN: Final = {"tooltip", "href", "cursor", "description"}
"""Keys of marks that change no picture, but take Vega time."""
_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What stops vl-convert, and with it the process."""
_MOVED: Final = re.compile(r"translate\((-?[\d.]+)")
_WIDTH: Final = re.compile(r"h([\d.]+)")
_LONG: Final = re.compile(r"-?\d+\.\d{2,}(?:e-\d+)?")


class Picture(NamedTuple):
    """An SVG file, its size in pixels, and its number of marks by type: `rect`, `symbol`, …"""

    svg: str
    width: int
    height: int
    marks: Mapping[str, int]


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
        values = {one["name"]: one.get("value") for one in vega["signals"]}
        for data in vega["data"]:
            if data.pop("url", None):
                filters = [one.get("expr", "") for one in data.get("transform", [])]
                keys = dict(SELECTED.findall(" ".join(filters)))
                chosen = {key: values[signal] for key, signal in keys.items()}
                rows = _chosen_rows(self.specification.with_name(f"{name}.csv"), chosen)
                data["values"] = _NOT_XML.sub(" ", rows)
        vega["marks"] = _without(vega["marks"], UNSEEN)
        return vega

    @property
    def choices(self) -> list[dict[str, Any]]:
        """Selects of the chart: `name`, `labels` of its options, and the index that is `chosen`."""
        signals: list[dict[str, Any]] = self._vega["signals"]
        bound = [one for one in signals if one.get("bind", {}).get("input") == "select"]
        return [
            {
                "name": one["bind"]["name"],
                "labels": one["bind"].get("labels", one["bind"]["options"]),
                "chosen": one["bind"]["options"].index(one["value"]),
            }
            for one in bound
        ]

    def pictures(self) -> dict[str, Picture]:
        """The pictures of `drawn`, by the name of the column."""
        return {name: self.drawn(px) for name, px in COLUMNS.items()}

    def drawn(self, column_px: int) -> Picture:
        """Vega's drawing in a column of `column_px`, reduced to shapes and words: no links, no
        tooltips, nothing for scripts.

        A drawing that is too wide is narrowed as in assets/charts.js: first a legend, by fewer
        columns, then the plot.
        """
        signals = {COLUMN_SIGNAL: column_px}
        root = self._draw(signals)
        for columns in LEGEND_COLUMNS:
            if max(_legend_ends(root), default=0) > column_px:
                root = self._draw(signals := {**signals, "legend_columns": columns})
        if (excess := math.ceil(float(root.attrib["width"])) - column_px) > 0:
            root = self._draw({**signals, COLUMN_SIGNAL: column_px - excess})
        width, height = (round(float(root.attrib[key])) for key in ("width", "height"))
        # Words at the right end are longer in the fonts of some readers: the picture is as wide as
        # its column, in which the chart has left them room.
        width = max(width, column_px)
        size = {"width": str(width), "height": str(height), "viewBox": f"0 0 {width} {height}"}
        svg = Element("svg", {"xmlns": SVG, "style": "color-scheme: light dark", **size})
        svg.extend(_kept(root))
        _number_ids(svg)
        marks = Counter(_marks(root))
        return Picture(ElementTree.tostring(svg, encoding="unicode"), width, height, marks)

    def _draw(self, signals: Mapping[str, int]) -> Element:
        """All that Vega draws, with these values of its signals."""
        others = [one for one in self._vega["signals"] if one["name"] not in signals]
        given = [{"name": name, "value": value} for name, value in signals.items()]
        config = {**both_palettes(), "aria": False}
        vega = {**self._vega, "config": config, "signals": [*given, *others]}
        return ElementTree.fromstring(vl_convert.vega_to_svg(vega, allowed_base_urls=[]))


def _chosen_rows(path: Path, chosen: Mapping[str, Any]) -> str:
    """The text of a CSV file with only the rows that have the `chosen` values, or none, in these
    columns. The picture shows no others, and Vega takes seconds to read all."""
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    for key, value in chosen.items():
        place = header.index(key)
        rows = [row for row in rows if not row[place] or _is_equal(row[place], value)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


def _is_equal(text: str, value: object) -> bool:
    return text == value if isinstance(value, str) else value is not None and float(text) == value


def _without(part: Any, keys: Collection[str]) -> Any:
    """A part of a specification without these keys, at any depth."""
    if isinstance(part, Mapping):
        return {key: _without(value, keys) for key, value in part.items() if key not in keys}
    return [_without(one, keys) for one in part] if isinstance(part, list) else part


def _number_ids(root: Element) -> None:
    """Number the ids, which Vega counts over all drawings of a process."""
    ids = [one.attrib["id"] for one in root.iter() if "id" in one.attrib]
    numbered = {f"url(#{old})": f"url(#i{number})" for number, old in enumerate(ids)}
    for one in root.iter():
        if "id" in one.attrib:
            one.set("id", f"i{ids.index(one.attrib['id'])}")
        for key in ("clip-path", "fill"):
            if one.get(key) in numbered:
                one.set(key, numbered[one.attrib[key]])


def _legend_ends(parent: Element, x: float = 0) -> Iterator[float]:
    """The right end of each legend, px; `parent` begins at `x`."""
    for child in parent:
        moved = _MOVED.match(child.get("transform", ""))
        left = x + (float(moved[1]) if moved else 0)
        yield from _legend_ends(child, left)
        if "role-legend" in parent.get("class", "").split():
            width = _WIDTH.search(child[0].get("d", ""))  # of its background
            yield left + (float(width[1]) if width else 0)


def _marks(parent: Element, mark: str = "") -> Iterator[str]:
    """The type of each mark that stands for data; axes and legends have none."""
    for child in parent:
        kinds = child.get("class", "").split()
        if "role-mark" in kinds:
            yield from _marks(child, kinds[0].removeprefix("mark-"))
        elif child.tag.rpartition("}")[2] not in SHAPES:
            yield from _marks(child, mark)
        elif mark not in ("", "group") and "NaN" not in child.get("d", ""):
            yield mark


def _kept(parent: Element) -> list[Element]:
    """The children of `parent` that can be seen; groups that do nothing are replaced by theirs."""
    found = []
    for child in parent:
        name = child.tag.rpartition("}")[2]
        attributes = _attributes(child)
        if name in SHAPES and (_is_seen(child) or parent.tag.endswith("clipPath")):
            shape = Element(name, attributes)
            shape.text = child.text
            for line in child:
                ElementTree.SubElement(shape, "tspan", _attributes(line)).text = line.text
            found.append(shape)
        elif name in GROUPS:
            group = Element("g" if name == "a" else name, attributes)
            group.extend(_kept(child))
            _share(group)
            is_kept = name not in ("g", "a") or group.attrib
            found += [group] if is_kept and len(group) else group
    return found


def _is_seen(shape: Element) -> bool:
    if "stop-color" in shape.attrib:
        return True
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
    kept = (*INHERITED, *REFERRING)
    return placed | {key: element.attrib[key] for key in kept if key in element.attrib}


def _share(group: Element) -> None:
    """Give `group` the attributes that all in it have alike."""
    for key in INHERITED:
        values = {child.get(key) for child in group}
        if len(group) > 1 and len(values) == 1 and (value := values.pop()):
            group.set(key, value)
            for child in group:
                del child.attrib[key]
