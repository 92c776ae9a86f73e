"""HTML that pages embed: tables, charts with their data, links that work from any page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

import pandas as pd


class Markup(str):
    """Text that is HTML already and must not be escaped."""

    __slots__ = ()


def cell(content: object) -> str:
    """`content` escaped, unless it is Markup."""
    return content if isinstance(content, Markup) else escape(str(content))


def code(text: str) -> Markup:
    return Markup(f"<code>{escape(text)}</code>")


def link(address: str, text: object) -> Markup:
    return Markup(f'<a href="{escape(address)}">{cell(text)}</a>')


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    caption: str = "",
    numeric: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> Markup:
    """A table with a header row; `numeric` columns are set right, `ids` are the rows' anchors."""
    body = []
    for index, row in enumerate(rows):
        own_id = f' id="{escape(ids[index])}"' if ids else ""
        body.append(f"<tr{own_id}>{_cells(columns, row, numeric)}</tr>")
    title = f"<caption>{cell(caption)}</caption>" if caption else ""
    return _framed(f"{title}{_head(columns, numeric)}<tbody>{''.join(body)}</tbody>")


def grouped_table(
    columns: Sequence[str],
    groups: Iterable[tuple[Markup, Iterable[Sequence[object]]]],
    *,
    numeric: Sequence[str] = (),
) -> Markup:
    """A table whose rows come in groups, each under a heading as wide as the table."""
    bodies = []
    for heading, rows in groups:
        body = "".join(f"<tr>{_cells(columns, row, numeric)}</tr>" for row in rows)
        wide = f'<th class="hp-group" scope="rowgroup" colspan="{len(columns)}">{heading}</th>'
        bodies.append(f"<tbody><tr>{wide}</tr>{body}</tbody>")
    return _framed(f"{_head(columns, numeric)}{''.join(bodies)}")


def _head(columns: Sequence[str], numeric: Sequence[str]) -> str:
    cells = "".join(f'<th scope="col"{_align(name, numeric)}>{cell(name)}</th>' for name in columns)
    return f"<thead><tr>{cells}</tr></thead>"


def _cells(columns: Sequence[str], row: Sequence[object], numeric: Sequence[str]) -> str:
    return "".join(
        f"<td{_align(name, numeric)}>{cell(value)}</td>"
        for name, value in zip(columns, row, strict=True)
    )


def _framed(content: str) -> Markup:
    return Markup(
        '<div class="hp-table" tabindex="0" data-search-exclude>'
        f'<table class="hp">{content}</table></div>'
    )


def _align(name: str, numeric: Sequence[str]) -> str:
    return ' class="hp-number"' if name in numeric else ""


def data_table(data: pd.DataFrame, formats: dict[str, tuple[str, Callable[..., object]]]) -> Markup:
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
        f'<div class="hp-view" role="img" aria-label="{escape(description)}"'
        f' data-spec="{escape(spec)}" data-root="{escape(root)}"><div></div></div></div>'
        f"<figcaption>{cell(caption)}</figcaption>"
        f'<details class="hp-data"><summary>Data</summary>'
        f"<p>{link(csv, 'These rows as CSV')}</p>{data}</details></figure>"
    )
