"""A drawing of the package, from its imports and from the layers that pyproject.toml sets."""

from __future__ import annotations

import importlib
import itertools
import re
import statistics
import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import grimp
from markupsafe import Markup

from analysis import ROOT
from analysis.report.html import code, table
from analysis.report.svg import element

PACKAGE: Final = "analysis"


class Size(NamedTuple):
    """Pixels of a drawing: a box, the space between boxes, and an arrow's lane between them."""

    name: str
    box: float
    gap: float
    lane: float
    has_purposes: bool


WIDE: Final = Size("wide", box=152, gap=8, lane=12, has_purposes=True)
NARROW: Final = Size("narrow", box=68, gap=5, lane=7, has_purposes=False)
"""For a column too narrow for the purposes in the boxes."""

LETTER_PX: Final = 5.6
"""Width of a letter of a purpose, at most."""
LINE_PX: Final = 14
PADDING_PX: Final = 6
BETWEEN_LAYERS_PX: Final = 38


@dataclass(frozen=True)
class Structure:
    """Parts of the package by layer from the top, what each is, and what each imports."""

    layers: Sequence[Sequence[str]]
    purposes: Mapping[str, str]
    imports: Mapping[str, frozenset[str]]

    def arrows(self) -> list[tuple[str, str]]:
        """Imports that no chain of other imports implies, so that a drawing of them is legible."""
        return [
            (one, other)
            for one, imported in self.imports.items()
            for other in sorted(imported)
            if not any(other in self.reached(between) for between in imported - {other})
        ]

    def reached(self, part: str) -> frozenset[str]:
        """All that `part` imports, and what that imports, and so on."""
        direct = self.imports[part]
        return direct.union(*(self.reached(other) for other in direct))


def read_structure() -> Structure:
    """The package as it is: the contract's layers, first sentences of docstrings, imports."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = [
        [name.strip() for name in line.split("|")] for line in settings["contracts"][0]["layers"]
    ]
    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    names = [name for layer in layers for name in layer]
    return Structure(
        layers=layers,
        purposes={name: _first_sentence(f"{PACKAGE}.{name}") for name in names},
        imports={
            name: frozenset(
                other
                for other in names
                if other != name
                and graph.direct_import_exists(
                    importer=f"{PACKAGE}.{name}", imported=f"{PACKAGE}.{other}", as_packages=True
                )
            )
            for name in names
        },
    )


def _first_sentence(module: str) -> str:
    paragraph = (importlib.import_module(module).__doc__ or "").partition("\n\n")[0]
    return re.split(r"(?<=\.)\s", paragraph.replace("\n", " "))[0]


PORT_PX: Final = 12
"""Between two arrows at one box."""


@dataclass(eq=False)
class Node:
    """A box, or where `name` is empty a lane in which an arrow passes a layer."""

    layer: int
    name: str = ""
    x: float = 0.0
    above: list[Node] = field(default_factory=list)
    below: list[Node] = field(default_factory=list)

    def width(self, size: Size) -> float:
        return size.box if self.name else size.lane

    def port(self, other: Node) -> float:
        """Where along this node the line to `other` begins or ends."""
        if not self.name:
            return self.x
        side = sorted(self.above if other in self.above else self.below, key=lambda node: node.x)
        return self.x + (side.index(other) - (len(side) - 1) / 2) * PORT_PX


def _nodes(structure: Structure) -> list[list[Node]]:
    """Boxes and lanes by layer, linked from each layer to the next."""
    layers = [[Node(i, name) for name in names] for i, names in enumerate(structure.layers)]
    boxes = {node.name: node for layer in layers for node in layer}
    for one, other in structure.arrows():
        start, end = boxes[one], boxes[other]
        chain = [start, *(Node(i) for i in range(start.layer + 1, end.layer)), end]
        for node in chain[1:-1]:
            layers[node.layer].append(node)
        for upper, lower in itertools.pairwise(chain):
            upper.below.append(lower)
            lower.above.append(upper)
    return layers


SWEEPS: Final = 6
"""Each puts boxes and lanes nearer to what they are linked with."""


def _place(layers: list[list[Node]], size: Size) -> float:
    """Give every node its x, near those it is linked with; returns the width of it all."""
    widths = [sum(node.width(size) + size.gap for node in layer) - size.gap for layer in layers]
    width = max(widths)

    def set_out(layer: list[Node], layer_width: float) -> None:
        x = (width - layer_width) / 2
        for node in layer:
            node.x = x + node.width(size) / 2
            x += node.width(size) + size.gap

    rows = list(zip(layers, widths, strict=True))
    for row in rows:
        set_out(*row)
    for sweep in range(SWEEPS):
        is_down = sweep % 2 == 0
        for layer, layer_width in rows[:: 1 if is_down else -1]:
            layer.sort(key=lambda node: _pull(node, is_down))
            set_out(layer, layer_width)
    return width


def _pull(node: Node, is_down: bool) -> float:
    linked = node.above if is_down else node.below
    return statistics.fmean(other.x for other in linked) if linked else node.x


def draw(structure: Structure, size: Size) -> Markup:
    """The layers from the top, a box a part and an arrow to what it imports; SVG."""
    layers = _nodes(structure)
    width = _place(layers, size)
    texts = {
        name: textwrap.wrap(purpose, int((size.box - PADDING_PX) / LETTER_PX))
        if size.has_purposes
        else []
        for name, purpose in structure.purposes.items()
    }
    tops, heights = [], []
    y = 1.0
    for layer in layers:
        lines = max(1 + len(texts[node.name]) for node in layer if node.name)
        tops.append(y)
        heights.append(lines * LINE_PX + 2 * PADDING_PX)
        y += heights[-1] + BETWEEN_LAYERS_PX
    height = y - BETWEEN_LAYERS_PX + 1
    lines_ = [
        _line(node, lower, tops, heights, size)
        for layer in layers
        for node in layer
        for lower in node.below
    ]
    boxes = [
        _box(node, texts[node.name], tops[node.layer], heights[node.layer], size)
        for layer in layers
        for node in layer
        if node.name
    ]
    head = element(
        *("marker", element("path", d="M0 0L6 3L0 6z")),
        id=f"hp-arrow-{size.name}",
        viewBox="0 0 6 6",
        refX=6,
        refY=3,
        markerWidth=6,
        markerHeight=6,
        orient="auto",
    )
    return element(
        *("svg", element("defs", head), *lines_, *boxes),
        class_=f"hp-{size.name}",
        viewBox=f"-1 0 {width + 2:.0f} {height:.0f}",
        width=f"{width + 2:.0f}",
        role="img",
        aria_labelledby="hp-drawing-caption",
    )


def _line(
    node: Node, lower: Node, tops: Sequence[float], heights: Sequence[float], size: Size
) -> Markup:
    """From a node to one a layer below, through that layer where it is a lane."""
    bottom = tops[node.layer] + heights[node.layer]
    start, end, top = node.port(lower), lower.port(node), tops[lower.layer]
    bend = BETWEEN_LAYERS_PX / 2
    path = (
        f"M{start:.1f} {bottom:.1f}C{start:.1f} {bottom + bend:.1f}"
        f" {end:.1f} {top - bend:.1f} {end:.1f} {top:.1f}"
    )
    if lower.name:
        return element("path", class_="hp-line", d=path, marker_end=f"url(#hp-arrow-{size.name})")
    return element("path", class_="hp-line", d=f"{path}V{top + heights[lower.layer]:.1f}")


def _box(node: Node, lines: Sequence[str], top: float, height: float, size: Size) -> Markup:
    left = node.x - size.box / 2
    rectangle = element("rect", x=left, y=top, width=size.box, height=height, rx=3)
    y = top + (height - LINE_PX * (1 + len(lines))) / 2 + LINE_PX - 4
    words = [
        element("text", line, x=node.x, y=y + LINE_PX * i, class_="hp-name" if i == 0 else "")
        for i, line in enumerate([node.name, *lines])
    ]
    return element("g", rectangle, *words)


def drawing(structure: Structure) -> Markup:
    """The drawing for wide and for narrow screens, with its caption."""
    caption = (
        "The layers of the package. An arrow leads from a part to one it imports; where others on"
        " the way import that one, too, there is none. The table below has every import."
    )
    return Markup(
        f'<figure class="hp-drawing">{draw(structure, WIDE)}{draw(structure, NARROW)}'
        f'<figcaption id="hp-drawing-caption">{caption}</figcaption></figure>'
    )


def part_table(structure: Structure) -> Markup:
    """The drawing in words: every part from the top, what it is, and what it imports."""
    order = [name for layer in structure.layers for name in layer]
    rows = [
        [
            code(name),
            structure.purposes[name],
            Markup(", ".join(code(other) for other in order if other in structure.imports[name])),
        ]
        for name in order
    ]
    return table(["part", "what it is", "imports"], rows)
