"""A chart as files of the site: one Vega-Lite specification with its data, and two pictures of it
for readers without scripts, as the words of one picture cannot suit both a phone and a desk."""

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import altair as alt
import pandas as pd
import vl_convert

from analysis.base.errors import FieldError
from analysis.base.files import write_whole
from analysis.site.charts.theme import CONFIGURATION, Chart, Select

ENGINE: Final = "vega.js"
"""Vega and Vega-Lite as one script of the site, which draws the charts in the browser."""
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
_SIZE: Final = re.compile(r'<svg [^>]*\bwidth="([\d.]+)"[^>]*\bheight="([\d.]+)"')


class ChartSummary(NamedTuple):
    """Description of a chart, its menus, and width and height of its pictures by name, px.

    A menu has a `label`, `column`, `options`, and the index that is `chosen`. `has_links` if a mark
    leads to its samples.
    """

    description: str
    choices: Sequence[Mapping[str, Any]]
    sizes: Mapping[str, Sequence[int]]
    has_links: bool


def write_engine(folder: Path) -> None:
    """Write ENGINE to `folder`."""
    shutil.copy(kept_engine(folder.parent), folder / ENGINE)


def kept_engine(folder: Path) -> Path:
    """ENGINE of the installed versions in `folder`, bundled once, because that takes seconds."""
    lite = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    kept = folder / f"vega-lite-{lite}-{version('vl-convert-python')}.js"
    if not kept.exists():
        bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=lite)
        write_whole(kept, bundle)
    return kept


def write_charts(
    charts: Mapping[str, Chart | None], folder: Path, machines: Mapping[str, str] = NO_NAMES
) -> None:
    """Write `<name>.json` and its pictures `<name>.wide.svg` and `<name>.narrow.svg` for all
    `charts`, and INDEX.

    machines: names on pages by machine; charts begin with the first one that they have
    FieldError: a chart has no numbers where it draws them, or too many rows
    """
    index = {
        name: chart and write_chart(chart, folder, name, machines) for name, chart in charts.items()
    }
    (folder / INDEX).write_text(json.dumps(index))


def read_index(folder: Path) -> dict[str, ChartSummary | None]:
    """INDEX of the charts in `folder`."""
    index: dict[str, list[Any] | None] = json.loads((folder / INDEX).read_text())
    return {name: None if one is None else ChartSummary(*one) for name, one in index.items()}


def write_chart(
    chart: Chart, folder: Path, name: str, machines: Mapping[str, str] = NO_NAMES
) -> ChartSummary:
    """Write one chart, as `write_charts`."""
    marks = chart.drawing.copy(deep=False)
    marks.data = alt.InlineData(values=[])
    drawing: dict[str, Any] = marks.to_dict(validate=False)
    drawing |= {"description": chart.description, "config": CONFIGURATION}
    table, selects = chart.table, [*chart.selects]
    if MACHINE in table:
        table = table.assign(**{MACHINE: table[MACHINE].replace(dict(machines))})
        present = set(table[MACHINE])
        first = next((name for name in machines.values() if name in present), None)
        selects.insert(0, Select(MACHINE, MACHINE, first))
    numbers = quantities(drawing) & set(table.columns)
    menus = _menus(table, selects, numbers)
    words = {*re.findall(r"\w+", json.dumps(drawing)), *chart.columns, "href", "state"}
    words |= {menu["column"] for menu in menus}
    table = table[[column for column in table.columns if column in words]]
    # By default, it rounds to a tenth of a nanosecond.
    rows: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=15))
    start = {menu["column"]: (None, menu["options"][menu["chosen"]]) for menu in menus}
    shown = [row for row in rows if all(row[column] in fits for column, fits in start.items())]
    _require_numbers(f"chart {name}", shown, numbers)
    folder.mkdir(parents=True, exist_ok=True)
    sizes = {}
    for size, width in WIDTHS.items():
        document = {**drawing, "width": width, "autosize": FIT, "data": {"values": shown}}
        svg = vl_convert.vegalite_to_svg(document, allowed_base_urls=[])
        svg = svg.replace("<svg ", '<svg style="color-scheme: light dark" ', 1)
        (folder / f"{name}.{size}.svg").write_text(svg)
        sizes[size] = [round(float(side)) for side in _SIZE.findall(svg)[0]]
    tooltip = [
        {"field": key, "title": title, "type": "nominal"}
        for key, title in chart.columns.items()
        if key in table
    ]
    # Layers that aggregate rows have no addresses.
    link = {"test": "isValid(datum.href)", "field": "href", "type": "nominal"}
    links = {"href": {"condition": link, "value": None}} if "href" in table else {}
    live = {
        **drawing,
        "width": "container",
        "autosize": FIT,
        "encoding": {**drawing.get("encoding", {}), "tooltip": tooltip, **links},
        "data": {"values": rows},
        "usermeta": {"selects": menus, "columns": list(chart.columns.items())},
    }
    (folder / f"{name}.json").write_text(json.dumps(live))
    return ChartSummary(chart.description, menus, sizes, bool(links))


def quantities(part: Any) -> set[str]:
    """Fields that a specification draws as numbers."""
    if isinstance(part, list):
        return set().union(*map(quantities, part))
    if not isinstance(part, dict):
        return set()
    known = {str(part["field"])} if part.get("type") == "quantitative" and "field" in part else ()
    return set(known).union(*map(quantities, part.values()))


def _menus(
    table: pd.DataFrame, selects: Sequence[Select], numbers: set[str]
) -> list[dict[str, Any]]:
    """The menus with more than one option. They begin with a choice that has numbers: the one
    nearest to their starts."""
    menus: list[dict[str, Any]] = []
    for select in selects:
        options = table[select.column].dropna().drop_duplicates().tolist()
        if len(options) > 1:
            chosen = options.index(select.start) if select.start in options else 0
            about = {"column": select.column, "label": select.label}
            menus.append({**about, "options": options, "chosen": chosen})
    numbered = table[table[sorted(numbers)].notna().any(axis=1)]
    if menus and not numbered.empty:
        fits = [
            numbered[menu["column"]].isin([menu["options"][menu["chosen"]], None]) for menu in menus
        ]
        nearest = numbered.iloc[int(pd.concat(fits, axis=1).sum(axis=1).to_numpy().argmax())]
        for menu in menus:
            if pd.notna(value := nearest[menu["column"]]):
                menu["chosen"] = menu["options"].index(value)
    return menus


def _require_numbers(where: str, rows: Sequence[Mapping[str, Any]], numbers: set[str]) -> None:
    """Check the rows that a chart shows at first: to publish an empty chart is a fault."""
    if not 0 < len(rows) <= MAX_ROWS:
        raise FieldError(where, f"1 to {MAX_ROWS} rows to draw", str(len(rows)))
    values = {field: [row[field] for row in rows if row[field] is not None] for field in numbers}
    for field, found in sorted(values.items()):
        if any(isinstance(value, str) for value in found):
            raise FieldError(where, f"numbers in the column {field}", "text")
    if numbers and not any(values.values()):
        raise FieldError(where, f"numbers in one of {', '.join(sorted(numbers))}", "none")
