"""HTML that pages embed: tables, charts with their data, links that work from any page.

What is not Markup is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from markupsafe import Markup, escape

NO_HTML = Markup()
_MARKDOWN: Final = re.compile(r"[][(){}`*_~^|!\\]")


def plain(text: str) -> Markup:
    """`text` of others within a sentence in Markdown: shown as it is, whatever it has of Markdown,
    HTML or a template."""
    escaped = escape(" ".join(text.split()))
    return Markup(_MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", escaped))


def code(text: object) -> Markup:
    return Markup("<code>{}</code>").format(text)


def link(address: str, text: object) -> Markup:
    return Markup('<a href="{}">{}</a>').format(address, text)


def moment(time: str) -> Markup:
    """A time of day as files have it, on one line."""
    return Markup("<time>{}</time>").format(time)


def copied(text: object) -> Markup:
    """`text` as code, with a button beside it that copies it; assets/copy.js makes the button."""
    return Markup("<code data-copy>{}</code>").format(text)


def joined(separator: str, parts: Iterable[object]) -> Markup:
    """`parts` in one line, `separator` between them."""
    return Markup(separator).join(Markup("{}").format(part) for part in parts)


def folded(summary: object, content: object) -> Markup:
    """`content` below a line that opens it."""
    return Markup('<details class="hp-more"><summary>{}</summary>{}</details>').format(
        summary, content
    )


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    numeric: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> Markup:
    """A table with a header row; `numeric` columns are set right, `ids` are the rows' anchors."""
    body = NO_HTML.join(
        Markup("<tr{}>{}</tr>").format(
            Markup(' id="{}"').format(ids[index]) if ids else NO_HTML, _cells(columns, row, numeric)
        )
        for index, row in enumerate(rows)
    )
    title = Markup("<caption>{}</caption>").format(caption) if caption else NO_HTML
    return _framed(title, _head(columns, numeric), Markup("<tbody>{}</tbody>").format(body))


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


def _head(columns: Sequence[str], numeric: Sequence[str]) -> Markup:
    cells = NO_HTML.join(
        Markup('<th scope="col"{}>{}</th>').format(_align(name, numeric), _breakable(name))
        for name in columns
    )
    return Markup("<thead><tr>{}</tr></thead>").format(cells)


def _breakable(name: str) -> Markup:
    """`name`, which may be that of a variant, with places where a line may end."""
    return Markup("_<wbr>").join(name.split("_"))


def _cells(columns: Sequence[str], row: Sequence[object], numeric: Sequence[str]) -> Markup:
    return NO_HTML.join(
        Markup("<td{}>{}</td>").format(_align(name, numeric), value)
        for name, value in zip(columns, row, strict=True)
    )


def _framed(*parts: Markup) -> Markup:
    return Markup(
        '<div class="hp-table" tabindex="0" data-search-exclude><table class="hp">{}</table></div>'
    ).format(NO_HTML.join(parts))


def _align(name: str, numeric: Sequence[str]) -> Markup:
    return Markup(' class="hp-number"') if name in numeric else NO_HTML
