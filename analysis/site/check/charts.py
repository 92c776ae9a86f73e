"""Faults of charts: without marks, or with text where a number is drawn."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from analysis.site.charts.columns import encodings
from analysis.site.check.faults import Fault

ANNOTATIONS: Final = {"rule", "text"}
"""Types of marks that only explain others."""
EXPLAINED: Final = {"skipped", "failed"}
"""States of rows that are drawn as the reason for having no number."""
SHOWN: Final = re.compile(r'data-spec="[^"]*charts/([^"]*)"')
SELECTING: Final = re.compile(r"datum\.(\w+) === (\w+)\b")
"""Column and select in a filter."""


def chart_faults(site: Path) -> Iterator[Fault]:
    """Faults of all charts that the pages of a finished site show."""
    shown = {name for page in site.glob("**/*.html") for name in SHOWN.findall(page.read_text())}
    for name in sorted(shown):
        yield from faults_of_chart(site / "charts" / name)


def faults_of_chart(path: Path) -> Iterator[Fault]:
    """Faults of the chart whose Vega specification is at `path`, beside its Vega-Lite and CSV."""
    name = path.name.removesuffix(".vg.json")
    where = f"chart {path.parent.name}/{name}"
    document = json.loads(path.with_name(f"{name}.json").read_text())
    with path.with_name(f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    types: Mapping[str, str] = document["data"]["format"]["parse"]
    drawn = _drawn_columns(document, types)
    for column in drawn:
        if types[column] != "number":
            yield Fault(where, f"expected numbers in the column {column}, got text")
        elif not any(_is_number(row[column]) for row in rows):
            yield Fault(where, f"expected numbers in the column {column}, got none")
    wanted = {*_mark_types(document)} - ANNOTATIONS
    if not ({*document["usermeta"]["marks"]} - (ANNOTATIONS if wanted else set())):
        yield Fault(where, "expected marks in the default selection, got none")
    yield from _empty_options(where, document, rows, drawn)


def _mark_types(part: Any) -> Iterator[str]:
    """Types of the marks in a part of a Vega-Lite specification."""
    if isinstance(part, list):
        for one in part:
            yield from _mark_types(one)
    elif isinstance(part, dict):
        if mark := part.get("mark"):
            yield str(mark["type"] if isinstance(mark, dict) else mark)
        for one in part.values():
            yield from _mark_types(one)


def _drawn_columns(document: Mapping[str, Any], types: Mapping[str, str]) -> list[str]:
    """Columns of the data that lie along an axis or set a colour or size as numbers."""
    found = [
        str(encoding["field"])
        for channel, encoding in encodings(document)
        if encoding.get("type") == "quantitative" and channel != "tooltip"
        if encoding.get("field") in types
    ]
    # An interval is missing where the runs do not allow one.
    return [name for name in dict.fromkeys(found) if not name.endswith(("_low", "_high"))]


def _empty_options(
    where: str,
    document: Mapping[str, Any],
    rows: Sequence[Mapping[str, str]],
    drawn: Sequence[str],
) -> Iterator[Fault]:
    """Options of selects that no row with a number, or with the reason for none, has."""
    filled = [
        row
        for row in rows
        if not drawn
        or any(_is_number(row[column]) for column in drawn)
        or row.get("state") in EXPLAINED
    ]
    columns = {select: column for column, select in SELECTING.findall(json.dumps(document))}
    for select in document.get("params", []):
        column = columns.get(select["name"], "")
        if not rows or column not in rows[0]:
            continue
        values = {row[column] for row in filled}
        values |= {f"{float(value):g}" for value in values if _is_number(value)}
        for option in select["bind"]["options"] if "bind" in select else []:
            text = f"{option:g}" if isinstance(option, int | float) else option
            if option is not None and text not in values:
                what = f"expected marks for {column} = {option}, which can be chosen, got none"
                yield Fault(where, what)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
