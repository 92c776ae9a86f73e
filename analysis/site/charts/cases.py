"""A study over its cases: how every variant's rate or time changes with the size of the work."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.site.charts.intervals import run_by_run, within_reach
from analysis.site.charts.theme import (
    COLOURS,
    GREY,
    STEP_COLOUR,
    Chart,
    case_selects,
    clock_select,
    finish,
    panels,
    partly_keyed,
    select,
    shown,
    si_axis,
    tooltip,
    varying_keys,
)
from analysis.site.facts.points import CASE_PREFIX
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import parse_case

HEIGHT_PX = 300
WIDE = 32
"""A key whose values differ by more than this factor is drawn over a logarithmic axis."""
MOST_TICKS = 12
FLAT_LABELS = 4
"""More names along an axis are turned, so that they do not overlap."""
NEAR = 0.05
"""Of two ticks no further apart than this share, the axis has room for one label."""
IS_STALE, STALE_SHAPE = "datum.state === 'stale'", alt.value("cross")
SHAPES = ("circle", "square", "triangle-up", "diamond")
STEPS, OTHERS, CEILINGS = ("step",), ("beyond", "reference"), ("ceiling",)


def cases_chart(facts: StudyFacts) -> Chart | None:
    """A panel a machine, a line a variant along the key with the most values.

    None where nothing is measured or no key varies.
    """
    value = "rate" if facts.figures.are_rates else "seconds"
    points = facts.points
    points = points[points[value].notna() & (points["state"] != "published")]
    keys = varying_keys(points, facts)
    if points.empty or not keys:
        return None
    headline = parse_case(facts.study.headline)
    swept = _swept(points, keys, headline)
    others = [key for key in keys if key != swept]
    column, along = _along(_at_headline(points, others, headline), swept, headline)
    # What has no place along the axis is not drawn: neither are its selects and its legend.
    points = points[points[column].notna()]
    others = [key for key in varying_keys(points, facts) if key != swept]
    drawn = set(points["variant"])
    focused = [name for name in facts.study.variant_names if name in drawn]
    focus = select("variant_shown", "highlight", [None, *focused], None)
    places = points.groupby("variant")[swept].nunique()
    lines = [
        _lines(facts, value, along, roles, _ordered(names, places) if roles == OTHERS else names)
        for roles in (STEPS, OTHERS, CEILINGS)
        if (names := [v.name for v in facts.study.with_role(*roles) if v.name in drawn])
    ]
    chart: Any = panels(
        alt.layer(*lines, height=HEIGHT_PX),
        points,
        *case_selects(points, others, headline),
        clock_select(facts, points, value),
        focus,
        filters=[shown(points, others)],
    )
    description = (
        f"{facts.study.title}: {value} of every variant over"
        f" {swept.removeprefix(CASE_PREFIX)}, a panel for each of {len(facts.machines)} machines."
    )
    return finish(chart, description, margin=70, compact_margin=60)


def _ordered(names: list[str], places: pd.Series) -> list[str]:
    """Those with a line before those with a single point: the first have a colour to themselves."""
    return sorted(names, key=lambda name: int(places[name]) < 2)


def _swept(points: pd.DataFrame, keys: list[str], headline: dict[str, Any]) -> str:
    """The key the lines run along: of the numeric ones that with the most values beside the
    headline's of the other keys."""
    numeric = [key for key in keys if pd.api.types.is_numeric_dtype(points[key])]

    def values(key: str) -> tuple[int, int]:
        others = [other for other in keys if other != key]
        beside = _at_headline(points, others, headline)
        return int(beside[key].nunique()), int(points[key].nunique())

    return max(numeric or keys, key=values)


def _at_headline(points: pd.DataFrame, keys: list[str], headline: dict[str, Any]) -> pd.DataFrame:
    """The points with the headline's values of `keys`, or of variants without such a key."""
    for key in keys:
        value = headline.get(key.removeprefix(CASE_PREFIX))
        without = points[key].isna()
        if value is not None:
            without &= ~points["variant"].isin(partly_keyed(points, key))
        points = points[without | (points[key] == value)]
    return points


def _along(points: pd.DataFrame, swept: str, headline: dict[str, Any]) -> tuple[str, alt.X]:
    """The column along the axis of `swept`, bytes where they grow with it, and that axis."""
    name = swept.removeprefix(CASE_PREFIX)
    # Of variants that differ in it, the size that most of them have.
    delivered = points.loc[points["payload_bytes"] > 0].groupby(swept)["payload_bytes"]
    sizes = delivered.agg(lambda known: known.mode().iloc[0])
    if len(sizes) > 1 and sizes.is_unique and sizes.is_monotonic_increasing:
        scale = alt.Scale(type="log", nice=False)
        axis = alt.Axis(
            labelExpr="format(datum.value, '.3~s') + 'B'",
            values=_ticks(sizes.tolist(), sizes.get(headline.get(name))),
            labelOverlap="greedy",
            labelSeparation=12,
            grid=False,
        )
        column = "payload_bytes"
        return column, alt.X(f"{column}:Q", title="payload, B", scale=scale, axis=axis)
    values = points[swept].dropna().drop_duplicates().sort_values()
    if not pd.api.types.is_numeric_dtype(values) or len(values) <= 2:
        angle = 0 if len(values) <= FLAT_LABELS else -90
        return swept, alt.X(f"{swept}:O", title=name, axis=alt.Axis(labelAngle=angle))
    least, most = values.min(), values.max()
    is_wide = least > 0 and least * WIDE < most
    scale = alt.Scale(type="log", nice=False) if is_wide else alt.Scale(zero=False)
    is_few = len(values) <= MOST_TICKS
    ticks = _ticks(values.tolist(), headline.get(name)) if is_few else alt.Undefined
    return swept, alt.X(f"{swept}:Q", title=name, scale=scale, axis=alt.Axis(values=ticks))


def _ticks(values: list[float], headline: float | None) -> list[float]:
    """`values` without those so near the headline's that only one of the labels would be shown."""
    if headline not in values:
        return values
    return [value for value in values if value == headline or abs(value / headline - 1) > NEAR]


def _lines(
    facts: StudyFacts, value: str, along: alt.X, roles: tuple[str, ...], names: list[str]
) -> Any:
    """Line, intervals and points of the variants `names`, which have `roles`.

    Steps, others and ceilings take a channel each, so that each has a separate scale and legend.
    """
    title = "payload rate, GB/s" if value == "rate" else "time"
    scale = alt.Scale(zero=True) if value == "rate" else alt.Scale(type="log")
    axis = alt.Axis() if value == "rate" else si_axis("s")
    focused = "variant_shown === null || datum.variant === variant_shown"
    base: Any = (
        alt.Chart()
        .transform_filter(f"indexof({names}, datum.variant) >= 0")
        .encode(
            x=along,
            opacity=alt.condition(focused, alt.value(0.95), alt.value(0.12)),
            tooltip=tooltip(facts),
            href="href:N",
        )
    )
    y = alt.Y(f"{value}:Q", title=title, scale=scale, axis=axis)
    style: dict[str, Any] = {"style": "ceiling"} if roles == CEILINGS else {}
    line = base.mark_line(strokeWidth=1.8, **style).encode(y=y, detail="variant:N")
    interval = (
        within_reach(base, value)
        .mark_rule(strokeWidth=1.5, **style)
        .encode(y=alt.Y("begin:Q", title=title), y2="reach:Q")
    )
    point = base.mark_point(filled=True, size=34, cursor="pointer", **style).encode(
        y=y, shape=alt.condition(IS_STALE, STALE_SHAPE, alt.value(SHAPES[0]))
    )
    few = base.transform_filter(f"!isValid(datum.{value}_low)")
    runs = run_by_run(few).mark_point(size=12, opacity=0.7, **style).encode(y="of_run:Q")
    if roles == STEPS:
        colour = alt.Color("variant:O", **_scale(names), legend=_legend("steps in order", names))
        return alt.layer(*(mark.encode(color=colour) for mark in (line, interval, runs, point)))
    if roles == CEILINGS:
        dashes = alt.Scale(domain=names, range=[[6, 3], [2, 2], [9, 2, 2, 2], [4, 1]])
        dash = alt.StrokeDash(
            "variant:N", sort=names, scale=dashes, legend=_legend("ceilings", names)
        )
        return alt.layer(line.encode(strokeDash=dash), interval, runs, point)
    domain = _other_categories(names)
    legend = _legend("others", names)
    stroke = alt.Stroke("variant:N", **_scale(domain), legend=legend)
    fill = alt.Fill("variant:N", **_scale(domain), legend=legend)
    shapes = alt.Scale(domain=domain, range=[_shape(place) for place in range(len(domain))])
    shape = alt.Shape("variant:N", sort=domain, scale=shapes, legend=legend)
    point = point.encode(fill=fill, shape=alt.condition(IS_STALE, STALE_SHAPE, shape))
    lines = (mark.encode(stroke=stroke) for mark in (line, interval, runs))
    return alt.layer(*lines, point)


def _other_categories(names: list[str]) -> list[str]:
    """`names` as categories of colours that steps and ceilings do not have: blanks take those."""
    domain: list[str] = []
    for name in names:
        while len(domain) % COLOURS in (STEP_COLOUR, GREY):
            domain.append(" " * len(domain))
        domain.append(name)
    return domain


def _shape(place: int) -> str:
    """Shapes distinguish variants that share a colour."""
    return SHAPES[place // COLOURS % len(SHAPES)]


def _scale(domain: list[str]) -> dict[str, Any]:
    return {"sort": domain, "scale": alt.Scale(domain=domain)}


def _legend(title: str, names: list[str]) -> alt.Legend:
    return alt.Legend(orient="bottom", title=title, values=names)
