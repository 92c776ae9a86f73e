"""HTML that pages embed: elements, figures, tables of rows. What is not Markup is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol, cast

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup, escape

from analysis.results.tables.rows import RatioRow
from analysis.site.facts.inputs import MeasuredRow

NO_HTML: Final = Markup()
_MARKDOWN: Final = re.compile(r"[][(){}`*_~^|!\\]")
_NUMBER: Final = re.compile(r"[-+≈]?\d")


class Parts(Protocol):
    """The macros of templates/parts.html."""

    def __getattr__(self, name: str) -> Callable[..., Markup]: ...


class _OneLine(Extension):
    """Joins the lines of a template: Markdown would end the HTML at a blank or indented line.

    A line break beside `<`, `>`, `{` or `}` is left out, any other becomes a space.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        without = re.sub(r"(?<=[>}])\s*\n\s*|\s*\n\s*(?=[<{])", "", source)
        return re.sub(r"\s*\n\s*", " ", without)


_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
    extensions=[_OneLine],
    autoescape=True,
    undefined=StrictUndefined,
)
_TEMPLATES.globals["zip"] = partial(zip, strict=True)
PARTS: Final = cast(Parts, _TEMPLATES.get_template("parts.html").module)


def plain(text: str) -> Markup:
    """`text` of others within a sentence in Markdown: shown as it is, whatever it has of Markdown,
    HTML or a template."""
    escaped = escape(" ".join(text.split()))
    return Markup(_MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", escaped))


def prose(text: str) -> Markup:
    """Plain text with `code` in it."""
    parts = " ".join(text.split()).split("`")
    return joined("", (code(part) if index % 2 else part for index, part in enumerate(parts)))


def element(name: str, *content: object, **attributes: str) -> Markup:
    """An element with its content; `class_` is the attribute `class`, `data_x` is `data-x`."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
    given = "".join(f' {key}="{escape(value)}"' for key, value in named.items())
    return Markup(f"<{name}{given}>{joined('', content)}</{name}>")


def code(text: object) -> Markup:
    return element("code", text)


def quiet(text: object) -> Markup:
    """A note in a quiet colour."""
    return element("span", text, class_="hp-quiet")


def link(address: str, text: object) -> Markup:
    return element("a", text, href=address)


def figure(text: object, row: MeasuredRow | RatioRow) -> Markup:
    """`text` with the figure of `row`, a median or a ratio, that says of what it is."""
    parts = (row.machine, row.study, row.variant, row.case, row.metric)
    if isinstance(row, RatioRow):
        return with_data(text, row.ratio, *parts, f"ratio:{row.against}")
    return with_data(text, row.median, *parts, "median")


def with_data(text: object, value: float, *parts: str) -> Markup:
    """`text` with its value, and `parts` that say of what it is. The publication check compares all
    values of the same parts."""
    return element("data", text, value=f"{value:.7g}", data_figure=" ".join(parts))


def gap(text: object) -> Markup:
    """Words in place of what could not be made, which the publication check finds."""
    return element("span", text, class_="hp-gap")


def joined(separator: str, parts: Iterable[object]) -> Markup:
    """`parts` in one line, `separator` between them."""
    return Markup(separator).join(map(escape, parts))


def folded(summary: object, content: object) -> Markup:
    """`content` below a line that opens it."""
    return element("details", element("summary", summary), content, class_="hp-more")


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
    empty are left out. assets/tables.js makes cards of rows where the table does not fit.

    ids: anchors of the rows
    numeric: columns that are set right; by default those whose cells all begin with a number
    """
    filled = list(rows)
    names = dict.fromkeys(name for row in filled for name in row)
    columns = {name: [row.get(name, "") for row in filled] for name in names}
    shown = {name: cells for name, cells in columns.items() if any(map(str, cells))}
    if not shown:
        return NO_HTML
    if numeric is None:
        numeric = [name for name, cells in shown.items() if all(map(_is_number, cells))]
    return PARTS.table([*shown], [*zip(*shown.values(), strict=True)], caption, numeric, ids)


def _is_number(cell: object) -> bool:
    """Whether a cell is empty or begins with a number."""
    text = cell.striptags() if isinstance(cell, Markup) else str(cell)
    return not text or bool(_NUMBER.match(text))
