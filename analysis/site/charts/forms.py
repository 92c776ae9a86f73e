"""Forms whose answers `all_answers` made: the browser only looks them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

Field = Mapping[str, object]
"""An input of a form."""


def choice(name: str, options: Mapping[str, str], start: str = "") -> Field:
    """A select of `options`, a value with its text; `start` or the first one is selected."""
    return {"name": name, "label": name, "options": options, "start": start or next(iter(options))}


def number(name: str, label: str, start: str, kind: str = "count") -> Field:
    """A number, or bytes with or without a unit if its `kind` is bytes."""
    return {"name": name, "label": label, "kind": kind, "start": start}


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


def form_data(
    label: str,
    fields: Sequence[Field],
    axes: Sequence[str],
    columns: Sequence[str],
    tables: Sequence[FormTable],
) -> dict[str, object]:
    """Data of a widget that docs/assets/form.js shows; `axes` are names of number fields."""
    return {
        "label": label,
        "fields": fields,
        "axes": axes,
        "columns": columns,
        "tables": [asdict(table) for table in tables],
    }
