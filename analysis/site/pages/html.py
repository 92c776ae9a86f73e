"""HTML that pages embed: tables, charts with their data, links that work from any page.

What is not Markup is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from markupsafe import Markup, escape

from analysis.site.facts.rows import MeasuredRow, RatioRow
from analysis.site.pages.stacking import is_too_wide
from analysis.site.pages.templates import macros

NO_HTML = Markup()
_MARKDOWN: Final = re.compile(r"[][(){}`*_~^|!\\]")
_NUMBER: Final = re.compile(r"[-+≈]?\s?\d")
_TEXT: Final = macros("text.html")
_TABLE: Final = macros("table.html")


def plain(text: str) -> Markup:
    """`text` of others within a sentence in Markdown: shown as it is, whatever it has of Markdown,
    HTML or a template."""
    escaped = escape(" ".join(text.split()))
    return Markup(_MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", escaped))


def code(text: object) -> Markup:
    return _TEXT.code(text)


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


def listed(tag: Literal["ul", "ol"], items: Iterable[object], kind: str = "") -> Markup:
    """A list; `kind` is its class."""
    return _TEXT.listed(tag, items, kind)


def joined(separator: str, parts: Iterable[object]) -> Markup:
    """`parts` in one line, `separator` between them."""
    return Markup(separator).join(Markup("{}").format(part) for part in parts)


def folded(summary: object, content: object) -> Markup:
    """`content` below a line that opens it."""
    return _TEXT.folded(summary, content)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    numeric: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> Markup:
    """A table with a header row. On a narrow screen, a table that does not fit is a card for each
    row.

    numeric: columns that are set right
    ids: anchors of the rows
    """
    filled = [list(row) for row in rows]
    return _TABLE.table(columns, filled, caption, numeric, ids, is_too_wide(columns, filled))


def records(
    rows: Iterable[Mapping[str, object]], *, caption: str = "", ids: Sequence[str] = ()
) -> Markup:
    """A table of `rows`, each a value by the column's title, without columns that are empty.

    A column whose values all begin with a number is set right. ids: anchors of the rows
    """
    filled = list(rows)
    names = [name for name in filled[0] if any(str(row[name]) for row in filled)] if filled else []
    numeric = [name for name in names if all(_is_number(row[name]) for row in filled)]
    lines = [[row[name] for name in names] for row in filled]
    return table(names, lines, caption=caption, numeric=numeric, ids=ids)


def _is_number(cell: object) -> bool:
    """Whether a cell is empty or begins with a number."""
    text = Markup(cell).striptags() if isinstance(cell, Markup) else str(cell)
    return not text or bool(_NUMBER.match(text))


def prose(text: str) -> Markup:
    """Plain text with `code` in it."""
    parts = text.strip().split("`")
    return joined("", (code(part) if index % 2 else part for index, part in enumerate(parts)))


def with_class(kind: str) -> Callable[[object], Markup]:
    """Writes text in a span of a class."""
    return lambda text: Markup('<span class="{}">{}</span>').format(kind, text)


def from_file(file: str, table: Markup) -> Markup:
    """A table that a study computes, from a file among its charts."""
    return _TABLE.from_file(file, table)


def wide(table: Markup) -> Markup:
    """A table whose last column is prose."""
    return _TABLE.wide(table)


def without_empty(
    columns: Sequence[str], rows: Sequence[Sequence[object]]
) -> tuple[list[str], list[list[object]]]:
    """Columns and rows without the columns in which every row is empty."""
    filled = [place for place in range(len(columns)) if any(row[place] for row in rows)]
    return [columns[place] for place in filled], [[row[place] for place in filled] for row in rows]


def folded_tables(
    columns: Sequence[str],
    groups: Mapping[Markup | str, Sequence[Sequence[object]]],
    *,
    numeric: Sequence[str] = (),
) -> Markup:
    """A table for each of some groups of rows, folded below the group's name and its number of
    rows."""
    count = Markup("{} ({})")
    return joined(
        "",
        (
            folded(count.format(name, len(rows)), table(columns, rows, numeric=numeric))
            for name, rows in groups.items()
        ),
    )
