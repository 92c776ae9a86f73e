"""This study's own charts: the crossover map, the fitted lines, and the price of memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, replace
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from analysis.charts.steps import steps_chart
from analysis.charts.theme import Chart, finish, machine_select, select
from analysis.model.line import Estimate, fit_line
from analysis.report.points import Context, anchor
from analysis.report.quantities import (
    INTERVAL,
    digits,
    percent,
    quantity,
    quantity_interval,
    ratio,
)
from analysis.study import Study, parse_case
from kernels.transfers.advise import DIRECTIONS, advise, memory_of, method_of, moves

ANY = "any"
ROW_PX = 24
CELL_PX = 34
ONE_PIECE = {"size", "count", "direction"}
METHODS = ("loop", "packed", "2d", "batch", "graph", "gather")
KINDS = ("pageable", "pinned", "write_combined", "registered", "registered_huge")
PARTS = {
    "allocate_time": "allocate",
    "register_time": "page-lock afterwards",
    "write_time": "written by the CPU",
    "read_time": "read by the CPU",
    "free_time": "free",
}


def charts(context: Context) -> dict[str, Chart]:
    """Charts by the names the page embeds them by; none that has nothing to show."""
    made = {
        "steps": steps_chart(Context(context.inputs, at_headline(context.study))),
        "map": map_chart(context),
        "lines": lines_chart(context),
        "fits": fits_chart(context),
        "price": price_chart(context),
        "break_even": break_even_chart(context),
    }
    return {name: chart for name, chart in made.items() if chart is not None}


def at_headline(study: Study) -> Study:
    """The study with the variants that move the headline's piece, and such single pieces only."""
    variants = []
    for variant in study.variants:
        single = [c for c in variant.cases if set(c.values) == ONE_PIECE and c["count"] == 1]
        if study.headline in {case.id for case in single}:
            variants.append(replace(variant, cases=tuple(single)))
    return replace(study, variants=tuple(variants))


# The crossover map


def map_table(context: Context) -> pd.DataFrame:
    """The fastest way in each cell of size and count where at least two ways were measured.

    A row a machine, direction, kind of memory (or any of them), size and count.
    """
    rows = moves(context.study, context.inputs.summary)
    found = []
    for (machine, direction), own in rows.groupby(["machine", "direction"]):
        for memory in (ANY, *sorted(set(own["memory"]))):
            kind = own if memory == ANY else own[own["memory"] == memory]
            places = kind[["size", "count"]].drop_duplicates().astype(int)
            for size, count in sorted(places.itertuples(index=False, name=None)):
                ways = [w for w in advise(kind, size, count) if w.is_measured]
                if len(ways) < 2:
                    continue
                best, second = ways[:2]
                found.append(
                    {
                        "machine": machine,
                        "direction": direction,
                        "memory": memory,
                        "size": size,
                        "count": count,
                        "size_text": _binary(size),
                        "fastest": best.variant,
                        "method": method_of(best.variant),
                        "time": quantity(best.seconds, "s"),
                        "interval": quantity_interval(best.low, best.high, "s"),
                        "rate": size * count / best.seconds / 1e9,
                        "next": second.variant,
                        "by": ratio(second.seconds / best.seconds),
                        "surely": "yes" if best.high < second.low else "no",
                        "href": f"data/#{anchor(str(machine), context.study.name, best.variant)}",
                    }
                )
    return pd.DataFrame(found)


def map_chart(context: Context) -> Chart | None:
    """A panel a machine: size over count, the colour is the fastest way, the text by how much."""
    table = map_table(context)
    if table.empty:
        return None
    sizes = [_binary(size) for size in sorted(set(table["size"]), reverse=True)]
    memories = [ANY, *(kind for kind in KINDS if kind in set(table["memory"]))]
    shown = "datum.direction === direction_shown && datum.memory === memory_shown"
    base = alt.Chart().encode(
        x=alt.X("count:O", title="pieces", axis=alt.Axis(labelAngle=0, orient="top")),
        y=alt.Y("size_text:N", sort=sizes, title="size of a piece"),
        tooltip=[
            alt.Tooltip(f"{field}:N", title=title)
            for field, title in (
                *(("fastest", "fastest"), ("time", "time"), ("interval", INTERVAL)),
                *(("next", "next"), ("by", "times as fast as the next")),
                *(("surely", "intervals apart"), ("machine", "machine")),
            )
        ]
        + [alt.Tooltip("rate:Q", title="GB/s", format=".3~r")],
        href="href:N",
    )
    faint = alt.condition("datum.surely === 'yes'", alt.value(0.75), alt.value(0.3))
    colour = alt.Color(
        "method:N",
        scale=alt.Scale(domain=list(METHODS)),
        legend=alt.Legend(orient="top", title=None, symbolType="square"),
    )
    chart: Any = (
        alt.layer(
            base.mark_rect(cursor="pointer").encode(color=colour, opacity=faint),
            base.mark_text(fontSize=10, lineBreak=" ", dy=-5).encode(text="label:N"),
        )
        .properties(height=CELL_PX * len(sizes))
        .facet(
            facet=alt.Facet("machine:N", title=None, header=alt.Header(labelAnchor="start")),
            columns=1,
            data=table.assign(label=table["method"] + " " + table["by"]),
        )
        .resolve_axis(x="independent")
        .add_params(
            machine_select(context),
            select("memory_shown", "memory", memories, "pinned" if "pinned" in memories else ANY),
            select("direction_shown", "direction", _known(table, DIRECTIONS), "h2d"),
        )
        .transform_filter("machine_shown === null || datum.machine === machine_shown")
        .transform_filter(shown)
    )
    description = (
        f"{context.study.title}: the fastest way of moving pieces in each cell of size and count,"
        f" and how many times as fast it is as the next, for {len(context.machines)} machines."
    )
    finished: Chart = finish(chart, description, margin=90, compact_margin=80)
    return finished


# Latency and bandwidth


def line_points(context: Context) -> pd.DataFrame:
    """Times over size of a single piece, by kind, direction and clock, with the fitted line's.

    Columns machine, variant, direction, clock, size, seconds, fitted, and the line's parameters.
    """
    rows = []
    for (machine, variant, metric, direction), own in _single(context).groupby(
        ["machine", "variant", "metric", "direction"]
    ):
        ordered = own.sort_values("size")
        sizes = ordered["size"].to_numpy(dtype=float)
        line = fit_line(sizes, ordered["median"].to_numpy(dtype=float))
        if line is None:
            continue
        told = {
            **_told("latency", line.latency, "s"),
            **_told("bandwidth", line.bandwidth, "B/s"),
            **_told("half_size", line.half_size, "B"),
            "misfit": percent(line.misfit),
            "gigabytes": line.bandwidth.value / 1e9,
            "gigabytes_low": line.bandwidth.low / 1e9,
            "gigabytes_high": line.bandwidth.high / 1e9,
        }
        rows += [
            {
                "machine": machine,
                "variant": variant,
                "memory": memory_of(str(variant)),
                "direction": direction,
                "clock": context.study.metrics[str(metric)].label,
                "size": size,
                "seconds": seconds,
                "fitted": fitted,
                "time": quantity(float(seconds), "s"),
                "href": f"data/#{anchor(str(machine), context.study.name, str(variant))}",
                **told,
            }
            for size, seconds, fitted in zip(
                sizes, ordered["median"], line.seconds(sizes), strict=True
            )
        ]
    return pd.DataFrame(rows)


def _single(context: Context) -> pd.DataFrame:
    """Summary rows of loops of one piece, with their size and direction."""
    summary = context.inputs.of_study(context.inputs.summary, context.study)
    names = [f"{kind}_loop" for kind in KINDS]
    own = summary[
        summary["variant"].isin(names)
        & summary["metric"].isin(["gpu_time", "host_time"])
        & (summary["stale"].astype(int) == 0)
    ]
    keys = pd.DataFrame([parse_case(case) for case in own["case"]], index=own.index)
    keys = keys.reindex(columns=["size", "count", "direction"])
    is_one = (keys["count"] == 1) & keys["direction"].isin(DIRECTIONS)
    kept = own[is_one].join(keys.loc[is_one, ["size", "direction"]].astype({"size": float}))
    # By events a copy that the CPU takes part in has no device time worth a line.
    host_work = {v.name for v in context.study.variants if v.host_work}
    return kept[(kept["metric"] == "host_time") | ~kept["variant"].isin(host_work)]


def lines_chart(context: Context) -> Chart | None:
    """A panel a machine: measured times as points, the fitted lines through them."""
    table = line_points(context)
    if table.empty:
        return None
    clocks = list(dict.fromkeys(table["clock"]))
    base = alt.Chart().encode(
        x=alt.X(
            "size:Q",
            title="size, B",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(labelExpr="format(datum.value, '.3~s') + 'B'", grid=False),
        ),
        color=alt.Color(
            "memory:N",
            scale=alt.Scale(domain=list(KINDS)),
            legend=alt.Legend(orient="top", title=None),
        ),
        tooltip=_tooltip("memory", "direction", "time", "latency", "bandwidth", "half_size"),
        href="href:N",
    )
    seconds = alt.Axis(labelExpr="format(datum.value, '~s') + 's'")
    scale = alt.Scale(type="log")
    chart: Any = (
        alt.layer(
            base.mark_line(strokeWidth=1.2).encode(
                y=alt.Y("fitted:Q", title="time", scale=scale, axis=seconds)
            ),
            base.mark_point(filled=True, size=40, cursor="pointer").encode(
                y=alt.Y("seconds:Q", title="time", scale=scale, axis=seconds)
            ),
        )
        .properties(height=280)
        .facet(
            facet=alt.Facet("machine:N", title=None, header=alt.Header(labelAnchor="start")),
            columns=1,
            data=table,
        )
        .resolve_axis(x="independent")
        .add_params(*_line_selects(context, table, clocks))
        .transform_filter("machine_shown === null || datum.machine === machine_shown")
        .transform_filter("datum.clock === clock_shown && datum.direction === direction_shown")
    )
    description = (
        f"{context.study.title}: time over the size of one piece and the line a + n/b fitted to"
        f" it, by kind of memory, for {len(context.machines)} machines."
    )
    finished: Chart = finish(chart, description, margin=80, compact_margin=70)
    return finished


def fits_chart(context: Context) -> Chart | None:
    """A panel a machine, a row a kind of memory: the fitted bandwidth, and in words the rest."""
    points = line_points(context)
    if points.empty:
        return None
    table = points.drop(columns=["size", "seconds", "fitted", "time"]).drop_duplicates()
    table["label"] = table["latency"] + " + n / " + table["bandwidth"]
    clocks = list(dict.fromkeys(table["clock"]))
    row = alt.Y("memory:N", sort=list(KINDS), title=None, axis=alt.Axis(grid=False))
    fields = ("latency", "latency_interval", "bandwidth", "bandwidth_interval")
    base = alt.Chart().encode(
        y=row,
        tooltip=_tooltip("memory", "direction", *fields, "half_size", "misfit"),
        href="href:N",
    )
    chart: Any = (
        alt.layer(
            base.mark_bar(height=12, cursor="pointer").encode(
                x=alt.X("gigabytes:Q", title="fitted bandwidth, GB/s", scale=alt.Scale(zero=True))
            ),
            base.mark_rule(style="interval").encode(x="gigabytes_low:Q", x2="gigabytes_high:Q"),
            base.mark_text(align="left", dx=10).encode(x=alt.value("width"), text="label:N"),
        )
        .properties(height=ROW_PX * table["memory"].nunique())
        .facet(
            facet=alt.Facet("machine:N", title=None, header=alt.Header(labelAnchor="start")),
            columns=1,
            data=table.reset_index(drop=True),
        )
        .resolve_axis(x="independent")
        .add_params(*_line_selects(context, table, clocks))
        .transform_filter("machine_shown === null || datum.machine === machine_shown")
        .transform_filter("datum.clock === clock_shown && datum.direction === direction_shown")
    )
    description = (
        f"{context.study.title}: latency and bandwidth of single copies by kind of memory, fitted"
        f" to their times, for {len(context.machines)} machines."
    )
    finished: Chart = finish(chart, description, margin=310, compact_margin=240)
    return finished


def _line_selects(context: Context, table: pd.DataFrame, clocks: list[str]) -> list[alt.Parameter]:
    by_host = context.study.metrics["host_time"].label
    return [
        machine_select(context),
        select("direction_shown", "direction", _known(table, DIRECTIONS), "h2d"),
        select("clock_shown", "clock", clocks, by_host if by_host in clocks else clocks[0]),
    ]


# The price of memory


def price_table(context: Context) -> pd.DataFrame:
    """What each kind of memory takes of each size, part by part: a row a part."""
    rows = []
    for machine, variant, size, metric, row in _prices(context):
        seconds = float(row["median"])
        rows.append(
            {
                "machine": machine,
                "memory": memory_of(variant),
                "size": size,
                "size_text": _binary(size),
                "part": PARTS[metric],
                "seconds": seconds,
                "seconds_low": float(row["ci_low"]),
                "seconds_high": float(row["ci_high"]),
                "time": quantity(seconds, "s"),
                "interval": quantity_interval(float(row["ci_low"]), float(row["ci_high"]), "s"),
                "speed": f"{digits(size / seconds / 1e9)} GB/s",
                "href": f"data/#{anchor(machine, context.study.name, variant)}",
            }
        )
    return pd.DataFrame(rows)


def _prices(context: Context) -> Iterator[tuple[str, str, int, str, dict[str, Any]]]:
    """(machine, variant, size, metric, summary row) of every part of every price."""
    for (machine, variant, case, metric), row in context.summary.items():
        if variant.endswith("_price") and metric in PARTS and not row["stale"]:
            yield machine, variant, int(parse_case(case)["size"]), metric, row


def price_chart(context: Context) -> Chart | None:
    """A panel a machine, a row a kind of memory, a point a part of its price."""
    table = price_table(context)
    if table.empty:
        return None
    sizes = [_binary(size) for size in sorted(set(table["size"]))]
    axis = alt.Axis(labelExpr="format(datum.value, '~s') + 's'")
    across = alt.X("seconds:Q", title="time", scale=alt.Scale(type="log"), axis=axis)
    base = alt.Chart().encode(
        y=alt.Y("memory:N", sort=list(KINDS), title=None),
        color=alt.Color(
            "part:N",
            scale=alt.Scale(domain=list(PARTS.values())),
            legend=alt.Legend(orient="top", title=None),
        ),
        tooltip=_tooltip("memory", "part", "size_text", "time", "interval", "speed"),
        href="href:N",
    )
    chart: Any = (
        alt.layer(
            base.mark_rule()
            .encode(x2="seconds_high:Q")
            .encode(x=alt.X("seconds_low:Q", title="time", scale=alt.Scale(type="log"), axis=axis)),
            base.mark_point(filled=True, size=70, cursor="pointer").encode(x=across),
        )
        .properties(height=ROW_PX * len(KINDS))
        .facet(
            facet=alt.Facet("machine:N", title=None, header=alt.Header(labelAnchor="start")),
            columns=1,
            data=table,
        )
        .resolve_axis(x="independent")
        .add_params(
            machine_select(context),
            select("size_shown", "size", sizes, "16 MiB" if "16 MiB" in sizes else sizes[-1]),
        )
        .transform_filter("machine_shown === null || datum.machine === machine_shown")
        .transform_filter("datum.size_text === size_shown")
    )
    description = (
        f"{context.study.title}: time to allocate, page-lock, write, read and free memory of each"
        f" kind, for {len(context.machines)} machines."
    )
    finished: Chart = finish(chart, description, margin=130, compact_margin=110)
    return finished


def break_even_table(context: Context) -> pd.DataFrame:
    """After how many copies memory has paid for itself against pageable memory.

    A row a machine, kind, size and direction: the extra price of having it and giving it back,
    over what each copy saves. A kind whose copies save nothing never pays: NaN.
    """
    price: dict[tuple[str, str, int], float] = {}
    for machine, variant, size, metric, row in _prices(context):
        if metric in ("allocate_time", "register_time", "free_time"):
            key = machine, memory_of(variant), size
            price[key] = price.get(key, 0.0) + float(row["median"])
    single = _single(context)
    by_host = single[single["metric"] == "host_time"]
    places = by_host[["machine", "variant", "size", "direction"]].itertuples(index=False)
    copies = dict(zip((tuple(place) for place in places), by_host["median"], strict=True))
    rows = []
    for (machine, kind, size), seconds in price.items():
        if kind == "pageable" or (machine, "pageable", size) not in price:
            continue
        extra = seconds - price[machine, "pageable", size]
        for direction in DIRECTIONS:
            slow = copies.get((machine, "pageable_loop", size, direction))
            fast = copies.get((machine, f"{kind}_loop", size, direction))
            if slow is None or fast is None:
                continue
            saved = float(slow) - float(fast)
            count = max(extra, 0.0) / saved if saved > 0 else np.nan
            rows.append(
                {
                    "machine": machine,
                    "memory": kind,
                    "size": size,
                    "size_text": _binary(size),
                    "direction": direction,
                    "copies": count,
                    "extra": quantity(extra, "s") if extra > 0 else "nothing",
                    "saved": quantity(saved, "s") if saved > 0 else "nothing",
                    "label": "never" if np.isnan(count) else f"{np.ceil(count):.0f} copies",
                }
            )
    return pd.DataFrame(rows)


def break_even_chart(context: Context) -> Chart | None:
    """A panel a machine, a row a kind of memory: copies after which it has paid for itself."""
    table = break_even_table(context)
    if table.empty:
        return None
    sizes = [_binary(size) for size in sorted(set(table["size"]))]
    base = alt.Chart().encode(
        y=alt.Y("memory:N", sort=list(KINDS), title=None),
        tooltip=_tooltip("memory", "direction", "size_text", "label", "extra", "saved"),
    )
    chart: Any = (
        alt.layer(
            base.mark_bar(height=12).encode(x=alt.X("copies:Q", title="copies to break even")),
            base.mark_text(align="left", dx=10).encode(x=alt.value("width"), text="label:N"),
        )
        .properties(height=ROW_PX * table["memory"].nunique())
        .facet(
            facet=alt.Facet("machine:N", title=None, header=alt.Header(labelAnchor="start")),
            columns=1,
            data=table,
        )
        .resolve_axis(x="independent")
        .add_params(
            machine_select(context),
            select("size_shown", "size", sizes, "16 MiB" if "16 MiB" in sizes else sizes[-1]),
            select("direction_shown", "direction", _known(table, DIRECTIONS), "h2d"),
        )
        .transform_filter("machine_shown === null || datum.machine === machine_shown")
        .transform_filter("datum.size_text === size_shown && datum.direction === direction_shown")
    )
    description = (
        f"{context.study.title}: copies after which memory of each kind has paid for itself"
        f" against pageable memory, for {len(context.machines)} machines."
    )
    finished: Chart = finish(chart, description, margin=220, compact_margin=190)
    return finished


# What they share


def _tooltip(*fields: str) -> list[alt.Tooltip]:
    names = (*fields, "machine")
    return [alt.Tooltip(f"{name}:N", title=name.replace("_", " ")) for name in names]


def _told(name: str, estimate: Estimate, unit: str) -> dict[str, str]:
    value, low, high = astuple(estimate)
    return {
        name: quantity(value, unit),
        f"{name}_interval": quantity_interval(low, high, unit),
    }


def _known(table: pd.DataFrame, directions: tuple[str, ...]) -> list[str]:
    return [direction for direction in directions if direction in set(table["direction"])]


def _binary(size: int) -> str:
    """`16 MiB`: sizes here are powers of two."""
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size} B"
