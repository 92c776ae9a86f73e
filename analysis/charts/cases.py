"""A study over its cases: how every variant's rate or time changes with the size of the work."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.charts.theme import (
    Chart,
    case_selects,
    clock_select,
    finish,
    machine_select,
    select,
    shown,
    tooltip,
    varying_keys,
)
from analysis.report.points import CASE_PREFIX, Context
from analysis.study import parse_case

HEIGHT_PX = 300
STEPS, OTHERS, CEILINGS = ("step",), ("beyond", "reference"), ("ceiling",)


def cases_chart(context: Context) -> Chart | None:
    """A panel a machine, a line a variant along the key with the most values.

    None where nothing is measured or no key varies.
    """
    value = "rate" if context.has_rates else "seconds"
    points = context.points
    points = points[points[value].notna() & (points["state"] != "published")]
    keys = varying_keys(points, context)
    if points.empty or not keys:
        return None
    swept = _swept(points, keys)
    others = [key for key in keys if key != swept]
    drawn = set(points["role"])
    focus = select("variant_shown", "highlight", [None, *context.study.variant_names], None)
    along = _along(points, swept)
    lines = [
        _lines(context, value, along, roles)
        for roles in (STEPS, OTHERS, CEILINGS)
        if not drawn.isdisjoint(roles)
    ]
    chart: Any = (
        alt.layer(*lines)
        .properties(height=HEIGHT_PX)
        .facet(
            facet=alt.Facet("machine:N", title=None, header=alt.Header(labelAnchor="start")),
            columns=1,
            data=points,
        )
        .resolve_axis(x="independent")
        .add_params(
            machine_select(context),
            *case_selects(points, others, parse_case(context.study.headline)),
            clock_select(context),
            focus,
        )
        .transform_filter(shown(others))
    )
    description = (
        f"{context.study.title}: {value} of every variant over"
        f" {swept.removeprefix(CASE_PREFIX)}, a panel for each of {len(context.machines)} machines."
    )
    finished: Chart = finish(chart, description, margin=70, compact_margin=60)
    return finished


def _swept(points: pd.DataFrame, keys: list[str]) -> str:
    """The key the lines run along: of the numeric ones that with the most values."""
    numeric = [key for key in keys if pd.api.types.is_numeric_dtype(points[key])]
    return max(numeric or keys, key=lambda key: points[key].nunique())


def _along(points: pd.DataFrame, swept: str) -> alt.X:
    sizes = points.loc[points["payload_bytes"] > 0].groupby(swept)["payload_bytes"].nunique()
    if len(sizes) > 1 and points["payload_bytes"].nunique() >= len(sizes):
        scale = alt.Scale(type="log", nice=False)
        axis = alt.Axis(
            labelExpr="format(datum.value, '.3~s') + 'B'",
            values=sorted(points["payload_bytes"].unique().tolist()),
            labelOverlap="greedy",
            labelSeparation=12,
            grid=False,
        )
        return alt.X("payload_bytes:Q", title="payload, B", scale=scale, axis=axis)
    numeric = pd.api.types.is_numeric_dtype(points[swept])
    kind = "Q" if numeric else "N"
    return alt.X(f"{swept}:{kind}", title=swept.removeprefix(CASE_PREFIX))


def _lines(context: Context, value: str, along: alt.X, roles: tuple[str, ...]) -> Any:
    """Line, intervals and points of the variants with `roles`.

    Steps, others and ceilings take a channel each, so that each has a scale and legend of its own.
    """
    names = [variant.name for variant in context.study.with_role(*roles)]
    title = "payload rate, GB/s" if value == "rate" else "time"
    scale = alt.Scale(zero=True) if value == "rate" else alt.Scale(type="log")
    axis = alt.Axis() if value == "rate" else alt.Axis(labelExpr="format(datum.value, '~s') + 's'")
    focused = "variant_shown === null || datum.variant === variant_shown"
    base: Any = (
        alt.Chart()
        .transform_filter(f"indexof({names}, datum.variant) >= 0")
        .encode(
            x=along,
            opacity=alt.condition(focused, alt.value(0.95), alt.value(0.12)),
            tooltip=tooltip(context),
            href="href:N",
        )
    )
    y = alt.Y(f"{value}:Q", title=title, scale=scale, axis=axis)
    stale = alt.condition("datum.state === 'stale'", alt.value("cross"), alt.value("circle"))
    style: dict[str, Any] = {"style": "ceiling"} if roles == CEILINGS else {}
    line = base.mark_line(strokeWidth=1.8, **style).encode(y=y, detail="variant:N")
    interval = base.mark_rule(strokeWidth=1.5, **style).encode(
        y=alt.Y(f"{value}_low:Q", title=title), y2=f"{value}_high:Q"
    )
    point = base.mark_point(filled=True, size=34, cursor="pointer", **style).encode(
        y=y, shape=stale
    )
    if roles == STEPS:
        colour = alt.Color("variant:O", **_scale(names), legend=_legend("steps in order", names))
        return alt.layer(*(mark.encode(color=colour) for mark in (line, interval, point)))
    if roles == CEILINGS:
        dashes = alt.Scale(domain=names, range=[[6, 3], [2, 2], [9, 2, 2, 2], [4, 1]])
        dash = alt.StrokeDash(
            "variant:N", sort=names, scale=dashes, legend=_legend("ceilings", names)
        )
        return alt.layer(line.encode(strokeDash=dash), interval, point)
    # The first category colour is that of the steps; the others start behind it.
    others = _scale(["", *names])
    legend = _legend("others", names)
    stroke = alt.Stroke("variant:N", **others, legend=legend)
    fill = alt.Fill("variant:N", **others, legend=legend)
    return alt.layer(
        line.encode(stroke=stroke), interval.encode(stroke=stroke), point.encode(fill=fill)
    )


def _scale(domain: list[str]) -> dict[str, Any]:
    return {"sort": domain, "scale": alt.Scale(domain=domain)}


def _legend(title: str, names: list[str]) -> alt.Legend:
    return alt.Legend(
        orient="bottom", title=title, columns={"expr": "compact ? 2 : 6"}, values=names
    )
