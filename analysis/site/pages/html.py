"""HTML that pages embed: tables of rows, figures, links. What is not Markup is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from markupsafe import Markup, escape

from analysis.site.facts.rows import MeasuredRow, RatioRow
from analysis.site.pages.stacking import is_too_wide
from analysis.site.pages.templates import macros

NO_HTML = Markup()
_MARKDOWN: Final = re.compile(r"[][(){}`*_~^|!\\]")
_NUMBER: Final = re.compile(r"[-+≈]?\d")
_TEXT: Final = macros("text.html")
_TABLE: Final = macros("table.html")


def plain(text: str) -> Markup:
    """`text` of others within a sentence in Markdown: shown as it is, whatever it has of Markdown,
    HTML or a template."""
    escaped = escape(" ".join(text.split()))
    return Markup(_MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", escaped))


def prose(text: str) -> Markup:
    """Plain text with `code` in it."""
    parts = " ".join(text.split()).split("`")
    return joined("", (code(part) if index % 2 else part for index, part in enumerate(parts)))


def code(text: object) -> Markup:
    return _TEXT.code(text)


def quiet(text: object) -> Markup:
    """A note in a quiet colour."""
    return _TEXT.quiet(text)


def link(address: str, text: object) -> Markup:
    return _TEXT.link(address, text)


def moment(time: str) -> Markup:
    """A time of day as files have it, on one line."""
    return _TEXT.moment(time)


def figure(text: object, row: MeasuredRow | RatioRow) -> Markup:
    """`text` with the figure of `row`, a median or a ratio, that says of what it is."""
    parts = (row.machine, row.study, row.variant, row.case, row.metric)
    if isinstance(row, RatioRow):
        return with_data(text, row.ratio, *parts, f"ratio:{row.against}")
    return with_data(text, row.median, *parts, "median")


def with_data(text: object, value: float, *parts: str) -> Markup:
    """`text` with its value, and `parts` that say of what it is. The publication check compares all
    values of the same parts."""
    return _TEXT.figure(text, f"{value:.7g}", " ".join(parts))


def gap(text: object) -> Markup:
    """Words in place of what could not be made, which the publication check finds."""
    return _TEXT.gap(text)


def paragraph(*parts: object) -> Markup:
    return _TEXT.paragraph(*parts)


def joined(separator: str, parts: Iterable[object]) -> Markup:
    """`parts` in one line, `separator` between them."""
    return Markup(separator).join(Markup("{}").format(part) for part in parts)


def folded(summary: object, content: object) -> Markup:
    """`content` below a line that opens it."""
    return _TEXT.folded(summary, content)


def fenced(text: str, language: str) -> str:
    """`text` as a Markdown code block, longer-fenced than anything in it."""
    fence = "````" if "```" in text else "```"
    return f"{fence} {language}\n{text.rstrip()}\n{fence}"


def table(
    rows: Iterable[Mapping[str, object]],
    *,
    caption: object = "",
    ids: Sequence[str] = (),
    numeric: Sequence[str] | None = None,
) -> Markup:
    """A table of `rows`, each a cell by the column's title; nothing without rows. Columns that are
    empty are left out. On a narrow screen, a table that does not fit is a card for each row.

    ids: anchors of the rows
    numeric: columns that are set right; by default those whose cells all begin with a number
    """
    filled = list(rows)
    names = dict.fromkeys(name for row in filled for name in row)
    shown = [name for name in names if any(str(row.get(name, "")) for row in filled)]
    if not shown:
        return NO_HTML
    lines = [[row.get(name, "") for name in shown] for row in filled]
    if numeric is None:
        columns = zip(shown, zip(*lines, strict=True), strict=True)
        numeric = [name for name, cells in columns if all(map(_is_number, cells))]
    return _TABLE.table(shown, lines, caption, numeric, ids, is_too_wide(shown, lines))


def _is_number(cell: object) -> bool:
    """Whether a cell is empty or begins with a number."""
    text = cell.striptags() if isinstance(cell, Markup) else str(cell)
    return not text or bool(_NUMBER.match(text))


def folded_tables(groups: Mapping[str, Sequence[Mapping[str, object]]]) -> Markup:
    """A table for each of some groups of rows, folded below the group's name and its number of
    rows."""
    return joined(
        "", (folded(f"{name} ({len(rows)})", table(rows)) for name, rows in groups.items())
    )


def from_file(file: str, content: Markup) -> Markup:
    """A table that a study computes, from a file among its charts."""
    return _TABLE.from_file(file, content)


def wide(content: Markup) -> Markup:
    """A table whose last column is prose."""
    return _TABLE.wide(content)
