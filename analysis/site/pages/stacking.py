"""Tables on narrow screens: those that do not fit become a card for each row.

A stacked table has `data-stacked`, and each cell but the first the name of its column. The style
sheet does the rest. The extension of this module stacks tables in Markdown, `html.table` others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from markupsafe import Markup

NARROW_CHARACTERS: Final = 46
"""Characters of a table that are beside each other on a screen of 390 px, without its padding."""
PADDING_CHARACTERS: Final = 2
"""Space between two columns."""
PROSE_CHARACTERS: Final = 14
"""Width from which on prose can be read."""
AFTER_TOC: Final = 4
"""Priority of a tree processor that runs after the text of cells was parsed."""
STASHED: Final = re.compile("\x02[^\x03]*\x03")
"""HTML in Markdown, here line breaks in cells."""

_BREAK: Final = re.compile(r"<br\s*/?>")
_CODE: Final = re.compile(r"<code>(.*?)</code>", re.DOTALL)
_TAG: Final = re.compile(r"<[^>]*>")


def is_too_wide(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> bool:
    """Whether a table does not fit on a narrow screen. ValueError for a row with another number of
    cells than the header."""
    widths = [
        max([_word(name), *(_width(cell, place == 0) for cell in cells)])
        for place, (name, *cells) in enumerate(zip(columns, *rows, strict=True))
    ]
    return sum(widths) + PADDING_CHARACTERS * (len(widths) - 1) > NARROW_CHARACTERS


def _width(cell: object, is_first: bool) -> int:
    """Characters that a cell needs. The first cell of a row and code do not wrap."""
    text = str(cell)
    codes = _CODE.findall(text) if isinstance(cell, Markup) else []
    if isinstance(cell, Markup):
        text = Markup(_TAG.sub("", _BREAK.sub("\n", text))).unescape()
    longest = max(map(len, text.split("\n")))
    if is_first:
        return longest
    code = max((len(Markup(one).unescape()) for one in codes), default=0)
    return max(code, _word(text), min(longest, PROSE_CHARACTERS))


def _word(text: str) -> int:
    return max(map(len, text.split()), default=0)


class Stacks(Treeprocessor):  # type: ignore[misc]
    """Marks the tables of a page that are too wide, and names the columns of their cells."""

    def run(self, root: Element) -> None:
        for table in root.iter("table"):
            names = ["".join(head.itertext()) for head in table.iterfind("thead/tr/th")]
            rows = [list(row) for row in table.iterfind("tbody/tr")]
            if is_too_wide(names, [[_text(cell) for cell in row] for row in rows]):
                table.set("data-stacked", "")
                for row in rows:
                    for name, cell in zip(names[1:], row[1:], strict=True):
                        cell.set("data-column", name)


def _text(cell: Element) -> Markup:
    """The cell's text, in which code is marked."""
    parts = [Markup.escape(cell.text or "")]
    for child in cell:
        inner = Markup.escape("".join(child.itertext()))
        is_code = child.tag == "code" or child.find(".//code") is not None
        parts.append(Markup("<code>{}</code>").format(inner) if is_code else inner)
        parts.append(Markup.escape(child.tail or ""))
    return Markup(STASHED.sub("<br>", Markup().join(parts)))


class StackExtension(Extension):  # type: ignore[misc]
    """Python-Markdown's extension of this module."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.treeprocessors.register(Stacks(md), "stacks", AFTER_TOC)


def makeExtension(**settings: Any) -> StackExtension:
    """Called by Markdown to load the extension."""
    return StackExtension(**settings)
