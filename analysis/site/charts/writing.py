"""A chart as the page reads it: a specification, and its data as a CSV file beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import altair as alt
import pandas as pd
import vl_convert

from analysis.base.forked import forked_map
from analysis.site.charts.columns import NO_NAMES, column_table, encodings, measure_of, text_of
from analysis.site.charts.still import Still
from analysis.site.charts.theme import COLUMN_PX, COLUMN_SIGNAL, CONFIGURATION, Chart
from analysis.site.facts.js_names import marked

COMPILED_PX: Final = 300
"""Of the plot while it is compiled; then its width follows from the column's."""
MIN_CHARTS_PER_PROCESS: Final = 3
"""Minimum number of charts for each process: it starts an engine, which takes about as long as a
small chart."""
ENGINE_THREAD_PREFIX: Final = "V8"
"""Prefix of the names of the threads of vl_convert's engine."""
INDEX: Final = "all.charts.json"
"""ChartSummary by name for each chart of a group; null if there is nothing to draw. No chart has a
name with a dot in it."""

_POWERS: Final = range(-12, 16)
DECADES: Final = [float(f"1e{power}") for power in _POWERS]
TICKS: Final = [float(f"{digit}e{power}") for power in _POWERS for digit in (1, 2, 5)]
LABEL_PX: Final = {"x": 40, "y": 16}
"""Length of a label along its axis."""

MACHINE_FIELDS: Final = ("machine", "against")
"""Columns of machines."""
CALLED: Final = "_called"
"""What ends the name of a column of the same in the words of pages."""
LABELLED: Final = {
    "facet": "header",
    **dict.fromkeys(("x", "y"), "axis"),
    **dict.fromkeys(("color", "fill", "stroke", "shape", "strokeDash"), "legend"),
}
"""What has the labels of a channel."""


class ChartSummary(NamedTuple):
    """Description of a chart, its figures in words, its selects as of `Still.choices`, width and
    height of its pictures by column, px, and whether it shows anything stale and any intervals."""

    description: str
    text: str
    choices: Sequence[Mapping[str, Any]] = ()
    sizes: Mapping[str, Sequence[int]] = MappingProxyType({})
    has_stale: bool = False
    has_intervals: bool = False


class Written(NamedTuple):
    """The data of a chart, and its figures in words."""

    data: pd.DataFrame
    text: str


def write_charts(
    charts: Mapping[str, Chart | None],
    folder: Path,
    group: str,
    names: Mapping[str, str] = NO_NAMES,
) -> dict[str, ChartSummary | None]:
    """Write `charts` to `folder`, which will be charts/`group` of the site.

    Returns a summary of each, None if there is nothing to draw. `names` are the machine names of
    pages.
    """
    folder.mkdir(parents=True, exist_ok=True)
    some = {name: chart for name, chart in charts.items() if chart is not None}
    longest_first = sorted(some, key=lambda name: -len(some[name].data))

    def write(name: str) -> ChartSummary:
        written = write_chart(some[name], folder, name, f"charts/{group}", names)
        still = Still(folder / f"{name}.vg.json")
        pictures = still.pictures()
        for column, picture in pictures.items():
            (folder / f"{name}.{column}.svg").write_text(picture.svg)
        sizes = {column: [one.width, one.height] for column, one in pictures.items()}
        _add_marks(folder / f"{name}.json", pictures["wide"].marks)
        description = str(some[name].description)  # type: ignore[attr-defined]
        has_stale = bool({"stale", 1} & {*written.data.get("state", written.data.get("stale", []))})
        has_intervals = "rule" in pictures["wide"].marks
        return ChartSummary(
            description, written.text, still.choices, sizes, has_stale, has_intervals
        )

    processes = 1 if has_engine() else len(some) // MIN_CHARTS_PER_PROCESS or 1
    summaries = forked_map(write, longest_first, max_processes=processes)
    return dict.fromkeys(charts) | dict(zip(longest_first, summaries, strict=True))


def _add_marks(specification: Path, marks: Mapping[str, int]) -> None:
    """Have a chart say how many marks of each type its picture has, for the publication check."""
    document = json.loads(specification.read_text())
    document["usermeta"]["marks"] = marks
    specification.write_text(json.dumps(document))


def has_engine(tasks: Path = Path("/proc/self/task")) -> bool:
    """Whether vl_convert has started its engine in this process. A forked process would then hang
    when it draws, as it lacks the engine's threads."""
    names = []
    for task in tasks.iterdir():
        with suppress(OSError):  # a thread that has just ended
            names.append((task / "comm").read_text())
    return any(name.startswith(ENGINE_THREAD_PREFIX) for name in names)


def write_index(index: Mapping[str, ChartSummary | None], folder: Path) -> None:
    """Write the result of `write_charts` beside the charts, for the program that builds pages."""
    (folder / INDEX).write_text(json.dumps(index))


def read_index(folder: Path) -> dict[str, ChartSummary | None]:
    """Read the result of `write_index`."""
    index: dict[str, list[Any] | None] = json.loads((folder / INDEX).read_text())
    return {
        name: None if summary is None else ChartSummary(*summary) for name, summary in index.items()
    }


def write_chart(
    chart: Chart, folder: Path, name: str, url: str, names: Mapping[str, str] = NO_NAMES
) -> Written:
    """Write `<name>.json`, `<name>.vg.json` and `<name>.csv` to `folder`.

    The first is Vega-Lite, and checked against its schema. The second is the same in Vega, which
    is what the page draws; it has the colours of no palette. Both refer to the CSV as
    `url`/name.csv, which the page resolves from the root of the site. `names` as of
    `write_charts`.
    """
    data = chart.data
    assert isinstance(data, pd.DataFrame), f"{name}: a chart's data must be a table"
    with alt.data_transformers.disable_max_rows():  # the page reads them from a file
        document = chart.to_dict()
    inline = document["data"]["name"]
    del document["datasets"][inline]
    document, names = marked(document), marked(dict(names))
    texts = [str(column) for column in data.select_dtypes(exclude="number")]
    data = data.assign(**{column: data[column].map(marked) for column in texts})
    table_format = {"type": "csv", "parse": _types(data)}
    document["data"] = {"url": f"{url}/{name}.csv", "format": table_format}
    set_log_ticks(document)
    name_machines(document, names)
    measure = measure_of(document, data)
    document.setdefault("usermeta", {}).update(
        columns=column_table(data),
        measure=measure and measure._asdict(),
        names=dict(names),
    )
    folder.mkdir(parents=True, exist_ok=True)
    data.to_csv(folder / f"{name}.csv", index=False, float_format="%.7g")
    (folder / f"{name}.json").write_text(json.dumps(document))
    (folder / f"{name}.vg.json").write_text(json.dumps(_compiled(document)))
    return Written(data, text_of(data, measure, names))


def _compiled(document: dict[str, Any]) -> dict[str, Any]:
    """The Vega specification of a Vega-Lite one, without its configuration; its data set `shown`
    has the rows that the chart's selects leave."""
    document.get("spec", document)["width"] = COMPILED_PX
    compiled: dict[str, Any] = vl_convert.vegalite_to_vega(document, config=CONFIGURATION)
    del compiled["config"]
    _fit(compiled, "child_width" if "spec" in document else "width")
    (source,) = (one["name"] for one in compiled["data"] if "url" in one)
    filters = [one["filter"] for one in document.get("transform", []) if "filter" in one]
    transform = [{"type": "filter", "expr": one} for one in filters]
    compiled["data"].append({"name": "shown", "source": source, "transform": transform})
    return compiled


def _fit(compiled: dict[str, Any], width: str) -> None:
    """Derive the signal `width` of the plot from the width of the column; a chart without
    `theme.finish` keeps its width."""
    plot = compiled.get("usermeta", {}).pop("plot", None)
    if plot is None:
        # The configuration refers to them.
        given = {"compact": False, "legend_columns": 0, COLUMN_SIGNAL: COLUMN_PX}
        compiled.setdefault("signals", []).extend(
            {"name": name, "value": value} for name, value in given.items()
        )
        return
    if row_px := compiled["usermeta"].pop("compactRow", None):
        (step,) = (signal for signal in compiled["signals"] if signal["name"] == "y_step")
        step["update"] = f"compact ? {row_px} : {step.pop('value')}"
    others = [signal for signal in compiled["signals"] if signal["name"] != width]
    compiled["signals"] = [*others, {"name": width, "update": plot}]
    compiled.pop("width", None)


def _types(data: pd.DataFrame) -> dict[str, str]:
    return {
        str(name): "number" if pd.api.types.is_numeric_dtype(data[name]) else "string"
        for name in data.columns
    }


def set_log_ticks(document: dict[str, Any]) -> None:
    """Give the logarithmic axes of a Vega-Lite `document` ticks at 1, 2 and 5 in each decade or,
    without room for these, at the decades. Axes below a decade keep Vega's ticks, and so do axes
    with explicit ticks or another base."""
    for channel, encoding in encodings(document):
        scale = encoding.get("scale") or {}
        if channel in LABEL_PX and scale.get("type") == "log" and "base" not in scale:
            encoding.setdefault("axis", {}).setdefault("values", {"expr": _ticks(channel)})


def _ticks(channel: str) -> str:
    """In Vega's words, as only Vega knows what is selected and how wide the plot is."""
    decades = f"log(domain('{channel}')[1] / domain('{channel}')[0]) / LN10"
    room = f"abs(range('{channel}')[1] - range('{channel}')[0])"
    needed = f"{LABEL_PX[channel]} * {decades} / 0.3"  # from 1 to 2, the nearest two
    return f"{decades} < 1 ? null : {needed} <= {room} ? {TICKS} : {DECADES}"


def name_machines(document: dict[str, Any], names: Mapping[str, str]) -> None:
    """Have the headers, axes, legends, tooltips and selects of a Vega-Lite `document` say `names`
    of machines."""
    known = json.dumps(dict(names), ensure_ascii=False)
    calculated = document.setdefault("transform", [])
    for channel, encoding in [("facet", document.get("facet", {})), *encodings(document)]:
        field = encoding.get("field")
        if field not in MACHINE_FIELDS:
            continue
        if channel == "tooltip":
            named = f"{field}{CALLED}"
            encoding.update(field=named, title=encoding.get("title", field))
            called = {"calculate": f"{known}[datum.{field}] || datum.{field}", "as": named}
            if called not in calculated:
                calculated.insert(0, called)
        elif (guide := LABELLED.get(channel)) and encoding.setdefault(guide, {}) is not None:
            encoding[guide]["labelExpr"] = f"{known}[datum.label] || (datum.label)"
    for one in document.get("params", []):
        bind = one.get("bind")
        if isinstance(bind, dict) and bind.get("input") == "select":
            labels = bind.get("labels") or bind["options"]
            bind["labels"] = [names.get(label, label) for label in labels]
