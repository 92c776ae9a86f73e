"""Tables and widgets of a study's page: those of its page_tables.py and widgets.py. A widget has a
table for readers without scripts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup, escape

from analysis.site.facts.study_facts import StudyFacts
from analysis.toolchain.modules import load_python

SUFFIX: Final = ".page_table.json"


@dataclass(frozen=True)
class PageTable:
    """A table with a header row; `numeric` columns are set right. Without rows, the page shows the
    sentence `empty_text` if the table `may_be_empty`, and is otherwise not built."""

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    empty_text: str
    numeric: Sequence[str] = ()
    may_be_empty: bool = False


@dataclass(frozen=True)
class Widget:
    """A form: `data` is JSON for assets/form.js, by `form_data`; `columns` and `rows` are the table
    that readers without scripts see."""

    data: object
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class FormTable:
    """The answers to questions that differ only on the axes.

    where: values of the choices
    spans: which of `answers` holds where, as `all_answers` returns it
    answers: `lines` of text, and `rows` of cells, the last of which is an address of the site
    cells: the measured points, with a text that names each
    multiple: the value on the first axis must be a multiple of this
    """

    where: Mapping[str, str]
    spans: Sequence[object]
    answers: Sequence[Mapping[str, object]]
    cells: Sequence[tuple[Sequence[int], str]]
    multiple: int = 1


Field = Mapping[str, object]
"""An input of a form."""


def choice(name: str, options: Mapping[str, str], start: str = "") -> Field:
    """A select of `options`, a value with its text; `start` or the first one is selected."""
    return {"name": name, "label": name, "options": options, "start": start or next(iter(options))}


def number(name: str, label: str, start: str, kind: str = "count") -> Field:
    """A number, or bytes with or without a unit if its `kind` is bytes."""
    return {"name": name, "label": label, "kind": kind, "start": start}


def form_data(
    label: str,
    fields: Sequence[Field],
    axes: Sequence[str],
    columns: Sequence[str],
    tables: Sequence[FormTable],
) -> dict[str, object]:
    """Data of a widget; `axes` are names of number fields. The browser only looks
    up the answers that `all_answers` made."""
    of_tables = [asdict(table) for table in tables]
    return {"label": label, "fields": fields, "axes": axes, "columns": columns, "tables": of_tables}


def load_if_any(facts: StudyFacts, name: str) -> Any:
    """The study's module of this name; None without one."""
    is_there = (facts.study.folder / f"{name}.py").exists()
    return load_python(facts.study, name) if is_there else None


def write_page_tables(facts: StudyFacts, folder: Path) -> None:
    """Write the page tables of a study to the folder of its charts, with their cells as HTML."""
    module = load_if_any(facts, "page_tables")
    tables: Mapping[str, Callable[[StudyFacts], PageTable]] = module.TABLES if module else {}
    for name, make in tables.items():
        made = make(facts)
        rows = [[escape(cell) for cell in row] for row in made.rows]
        (folder / f"{name}{SUFFIX}").write_text(json.dumps({**vars(made), "rows": rows}))


def page_table_names(folder: Path) -> list[str]:
    """The names of the tables that `write_page_tables` wrote."""
    return sorted(path.name.removesuffix(SUFFIX) for path in folder.glob(f"*{SUFFIX}"))


def read_page_table(folder: Path, name: str) -> PageTable:
    """A table that `write_page_tables` wrote."""
    made: dict[str, Any] = json.loads((folder / f"{name}{SUFFIX}").read_text())
    return PageTable(**{**made, "rows": [[*map(Markup, row)] for row in made["rows"]]})


def study_widgets(facts: StudyFacts) -> Mapping[str, Widget | None]:
    """`widgets(facts)` of the study's widgets.py, by name; None is one without data."""
    module = load_if_any(facts, "widgets")
    return module.widgets(facts) if module else {}


def write_widgets(facts: StudyFacts, folder: Path) -> None:
    """Write the widgets of a study to the folder of its charts."""
    for name, widget in study_widgets(facts).items():
        if widget is None:
            continue
        (folder / f"{name}.widget.json").write_text(json.dumps(widget.data, allow_nan=False))
        rows = [dict(zip(widget.columns, row, strict=True)) for row in widget.rows]
        (folder / f"{name}.table.json").write_text(json.dumps(rows))


def widget_rows(folder: Path, name: str) -> list[dict[str, str]]:
    """The rows of a widget's table that `write_widgets` wrote; none if it has no data."""
    path = folder / f"{name}.table.json"
    rows: list[dict[str, str]] = json.loads(path.read_text()) if path.exists() else []
    return rows
