"""HTML that pages embed: tables, charts with their data, links that work from any page.

What is not Markup is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import pandas as pd
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


def joined(separator: str, parts: Iterable[object]) -> Markup:
    """`parts` in one line, `separator` between them."""
    return Markup(separator).join(Markup("{}").format(part) for part in parts)


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


def grouped_table(
    columns: Sequence[str],
    groups: Iterable[tuple[Markup, Iterable[Sequence[object]]]],
    *,
    numeric: Sequence[str] = (),
) -> Markup:
    """A table whose rows come in groups, each under a heading as wide as the table."""
    heading = Markup('<tr><th class="hp-group" scope="rowgroup" colspan="{}">{}</th></tr>')
    bodies = []
    for title, rows in groups:
        lines = (Markup("<tr>{}</tr>").format(_cells(columns, row, numeric)) for row in rows)
        first = heading.format(len(columns), title)
        bodies.append(Markup("<tbody>{}{}</tbody>").format(first, NO_HTML.join(lines)))
    return _framed(_head(columns, numeric), *bodies)


def _head(columns: Sequence[str], numeric: Sequence[str]) -> Markup:
    cells = NO_HTML.join(
        Markup('<th scope="col"{}>{}</th>').format(_align(name, numeric), name) for name in columns
    )
    return Markup("<thead><tr>{}</tr></thead>").format(cells)


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


def data_table(
    data: pd.DataFrame, formats: Mapping[str, tuple[str, Callable[..., object]]]
) -> Markup:
    """Every row of `data`, columns named and written as `formats` says; others are left out."""
    known = [name for name in formats if name in data.columns]
    columns = [formats[name][0] for name in known]
    written = [
        ["" if pd.isna(value) else formats[name][1](value) for value in data[name]]
        for name in known
    ]
    numeric = [formats[n][0] for n in known if pd.api.types.is_numeric_dtype(data[n])]
    return table(columns, zip(*written, strict=True), numeric=numeric)


def figure(spec: str, root: str, description: str, caption: str, csv: str, data: Markup) -> Markup:
    """A chart: selects, the drawing, its caption, and its data folded below.

    `spec`, `root` and `csv` are addresses relative to the page: of the specification, of the root
    of the site, and of the data.
    """
    return Markup(
        '<figure class="hp-chart">'
        '<form class="hp-controls" aria-label="What the chart shows"></form>'
        '<div class="hp-scroll" tabindex="0">'
        '<div class="hp-view" role="img" aria-label="{description}"'
        ' data-spec="{spec}" data-root="{root}"><div></div></div></div>'
        "<figcaption>{caption}</figcaption>"
        '<details class="hp-data"><summary>Data</summary>'
        "<p>{download}</p>{data}</details></figure>"
    ).format(
        description=description,
        spec=spec,
        root=root,
        caption=caption,
        download=link(csv, "These rows as CSV"),
        data=data,
    )
