"""A chart as files of the site: one Vega-Lite specification with its data, and two pictures of it
for readers without scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import altair as alt
import pandas as pd
import vl_convert

from analysis.base.errors import FieldError
from analysis.site.charts.theme import CONFIGURATION, Chart, Select

WIDTHS: Final = {"wide": 700, "narrow": 326}
"""Pixels of the picture for windows of 1280 and of 390."""
FIT: Final = {"type": "fit-x", "contains": "padding"}
"""How a picture is as wide as its column, as is a chart in a container."""
MAX_ROWS: Final = 2_000
"""Maximum number of rows that a chart draws at a time."""
INDEX: Final = "all.charts.json"
"""ChartSummary by name for each chart of a group; null if there is nothing to draw. No chart has a
name with a dot in it."""
NO_NAMES: Final[Mapping[str, str]] = {}
MACHINE: Final = "machine"


class ChartSummary(NamedTuple):
    """Description of a chart, its menus, and width and height of its pictures by name, px.

    A menu has a `label`, `column`, `options`, and the index that is `chosen`.
    """

    description: str
    choices: Sequence[Mapping[str, Any]] = ()
    sizes: Mapping[str, Sequence[int]] = MappingProxyType({})


def write_charts(
    charts: Mapping[str, Chart | None], folder: Path, machines: Mapping[str, str] = NO_NAMES
) -> dict[str, ChartSummary | None]:
    """Write `<name>.json` and its pictures `<name>.wide.svg` and `<name>.narrow.svg` for all
    `charts`; returns a summary of each, None if there is nothing to draw.

    machines: names on pages by machine; charts begin with the first one that they have
    FieldError: a chart has no numbers where it draws them, or too many rows
    """
    some = {name: chart for name, chart in charts.items() if chart is not None}
    return dict.fromkeys(charts) | {
        name: write_chart(chart, folder, name, machines) for name, chart in some.items()
    }


def write_chart(
    chart: Chart, folder: Path, name: str, machines: Mapping[str, str] = NO_NAMES
) -> ChartSummary:
    """Write one chart, as `write_charts`."""
    folder.mkdir(parents=True, exist_ok=True)
    drawing = _vega_lite(chart)
    table = _named(chart.table, machines)
    choices = _choices(chart, table, machines)
    columns = _used_columns(chart, drawing, choices, table)
    rows: list[dict[str, Any]] = json.loads(table[columns].to_json(orient="records"))
    quantities = _quantities(drawing) & set(columns)
    _start_with_numbers(choices, rows, quantities)
    shown = [row for row in rows if _is_shown(row, choices)]
    _check(f"chart {name}", shown, quantities)
    sizes = {}
    for size, width in WIDTHS.items():
        document = {**drawing, "width": width, "autosize": FIT, "data": {"values": shown}}
        svg = vl_convert.vegalite_to_svg(document, allowed_base_urls=[])
        svg = svg.replace("<svg ", '<svg style="color-scheme: light dark" ', 1)
        (folder / f"{name}.{size}.svg").write_text(svg)
        sizes[size] = [round(float(_size(svg, side))) for side in ("width", "height")]
    tooltip = [
        {"field": key, "title": title, "type": "nominal"}
        for key, title in chart.columns.items()
        if key in columns
    ]
    encoding = {**drawing.get("encoding", {}), "tooltip": tooltip}
    if "href" in columns:
        encoding["href"] = {"field": "href", "type": "nominal"}
    live = {
        **drawing,
        "width": "container",
        "autosize": FIT,
        "encoding": encoding,
        "data": {"values": rows},
        "usermeta": {"selects": choices, "columns": list(chart.columns.items())},
    }
    (folder / f"{name}.json").write_text(json.dumps(live))
    return ChartSummary(chart.description, choices, sizes)


def write_index(index: Mapping[str, ChartSummary | None], folder: Path) -> None:
    """Write the result of `write_charts` beside the charts, for the program that builds pages."""
    (folder / INDEX).write_text(json.dumps(index))


def read_index(folder: Path) -> dict[str, ChartSummary | None]:
    """Read the result of `write_index`."""
    index: dict[str, list[Any] | None] = json.loads((folder / INDEX).read_text())
    return {
        name: None if summary is None else ChartSummary(*summary) for name, summary in index.items()
    }


def _vega_lite(chart: Chart) -> dict[str, Any]:
    """The specification without data and width."""
    drawing = chart.drawing.copy(deep=False)
    drawing.data = alt.InlineData(values=[])
    document: dict[str, Any] = drawing.to_dict()
    return {**document, "description": chart.description, "config": CONFIGURATION}


def _named(table: pd.DataFrame, machines: Mapping[str, str]) -> pd.DataFrame:
    """`table` with the names that pages have for machines."""
    if MACHINE not in table:
        return table
    return table.assign(**{MACHINE: table[MACHINE].map(lambda one: machines.get(one, one))})


def _choices(
    chart: Chart, table: pd.DataFrame, machines: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The menus of a chart: those with more than one option."""
    selects = list(chart.selects)
    if MACHINE in table:
        known = set(table[MACHINE])
        first = next((name for name in machines.values() if name in known), None)
        selects.insert(0, Select(MACHINE, MACHINE, first))
    found = []
    for select in selects:
        values = table[select.column].dropna().drop_duplicates()
        options = [one.item() if hasattr(one, "item") else one for one in values]
        if len(options) < 2:
            continue
        start = select.start if select.start in options else options[0]
        found.append(
            {
                "column": select.column,
                "label": select.label,
                "options": options,
                "chosen": options.index(start),
            }
        )
    return found


def _used_columns(
    chart: Chart,
    drawing: Mapping[str, Any],
    choices: Sequence[Mapping[str, Any]],
    table: pd.DataFrame,
) -> list[str]:
    """Columns that the drawing, its tooltip or a menu names."""
    words = {*re.findall(r"\w+", json.dumps(drawing)), *chart.columns, "href", "state"}
    words |= {choice["column"] for choice in choices}
    return [name for name in map(str, table.columns) if name in words]


def _is_shown(row: Mapping[str, Any], choices: Sequence[Mapping[str, Any]]) -> bool:
    return all(
        row[choice["column"]] in (None, choice["options"][choice["chosen"]]) for choice in choices
    )


def _start_with_numbers(
    choices: Sequence[dict[str, Any]], rows: Sequence[Mapping[str, Any]], quantities: set[str]
) -> None:
    """Have the menus begin with a choice that has numbers: the one nearest to theirs."""

    def chosen(row: Mapping[str, Any]) -> list[bool]:
        return [row[one["column"]] in (None, one["options"][one["chosen"]]) for one in choices]

    numbered = [row for row in rows if any(row[field] is not None for field in quantities)]
    nearest = max(numbered, key=lambda row: sum(chosen(row)), default={})
    for choice in choices:
        if nearest.get(choice["column"]) is not None:
            choice["chosen"] = choice["options"].index(nearest[choice["column"]])


def _check(where: str, rows: Sequence[Mapping[str, Any]], quantities: set[str]) -> None:
    """Check the rows that a chart shows at first: to publish an empty chart is a fault."""
    if not 0 < len(rows) <= MAX_ROWS:
        raise FieldError(where, f"1 to {MAX_ROWS} rows to draw", str(len(rows)))
    values = {field: [row[field] for row in rows if row[field] is not None] for field in quantities}
    for field in sorted(quantities):
        if any(isinstance(value, str) for value in values[field]):
            raise FieldError(where, f"numbers in the column {field}", "text")
    if quantities and not any(values.values()):
        raise FieldError(where, f"numbers in one of {', '.join(sorted(quantities))}", "none")


def _quantities(part: Any) -> set[str]:
    """Fields that a specification draws as numbers."""
    if isinstance(part, list):
        return set().union(*map(_quantities, part))
    if not isinstance(part, dict):
        return set()
    own = {str(part["field"])} if part.get("type") == "quantitative" and "field" in part else set()
    return own.union(*map(_quantities, part.values()))


def _size(svg: str, side: str) -> str:
    found = re.search(rf'<svg [^>]*\b{side}="([\d.]+)"', svg)
    assert found is not None
    return found[1]
