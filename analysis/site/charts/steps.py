"""Every variant of a study in one case: how far each step goes, and what it cannot exceed."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from analysis.base.quantities import INTERVAL
from analysis.site.charts.intervals import ENDS, drawn_whole, run_by_run, within_reach
from analysis.site.charts.rows import BESIDE_PX, finish_rows, named, variant_rows
from analysis.site.charts.theme import (
    LABEL_LIMIT_PX,
    SHOWN_ROLES,
    Chart,
    case_selects,
    clock_select,
    panels,
    present,
    shown,
    si_axis,
    tooltip,
    varying_keys,
)
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import parse_case

ROLES = ("ceiling", "step", "beyond", "reference")
"""In the order of the rows."""
SHARE = (
    "(isValid(datum.share) ? ' · '"
    " + format(100 * datum.share, datum.share < 0.1 && !compact ? '.1f' : '.0f') + ' %' : '')"
)
"""What follows a figure that has a limit to be held against."""
SHARE_LETTERS = 8
NAME_PX, TEXT_PX = 6.7, 6.5
"""Width of a letter in a variant's name and in a figure."""


def steps_chart(facts: StudyFacts) -> Chart | None:
    """A panel a machine, a row a variant: intervals, ceilings as rules; None if unmeasured.

    Bars are rates where the study's operations deliver bytes, else dots are times.
    """
    if not facts.machines:
        return None
    value = "rate" if facts.figures.are_rates else "seconds"
    points = facts.points
    # The page lists variants that no machine could run.
    empty = set(facts.unreached) - set(points.loc[points[value].notna(), "variant"])
    points = points[~points["variant"].isin(empty)]
    if facts.figures.are_rates:
        # What delivers no bytes has no rate; its times are for tables.
        points = points[points["payload_bytes"] > 0]
    if points.empty:
        return None
    keys = varying_keys(points, facts)
    order = [variant.name for role in ROLES for variant in facts.study.with_role(role)]
    row = variant_rows(order, points)
    across = _axis(facts, value)
    tips = tooltip(facts)
    base = alt.Chart().encode(y=row, tooltip=tips, href="href:N")
    measured = base.transform_filter("datum.state !== 'published'")
    bars = measured.transform_filter("datum.role !== 'ceiling'")
    roles = present(SHOWN_ROLES, points["role"])
    colour = alt.Color(
        "role:N",
        scale=alt.Scale(domain=SHOWN_ROLES),
        legend=alt.Legend(orient="top", title=None, symbolType="square", values=roles),
    )
    faded = alt.condition("datum.state === 'stale'", alt.value(0.35), alt.value(0.9))
    mark = (
        bars.mark_bar(height=13, cursor="pointer")
        if facts.figures.are_rates
        else bars.mark_point(filled=True, size=70, cursor="pointer")
    )
    layers = [
        mark.encode(x=across, color=colour, opacity=faded),
        *_ceilings(facts, measured, value),
        *_intervals(measured, value),
        *([_runs(measured)] if points["by_run"].astype(bool).any() else []),
        *([_published(base, value)] if "published" in set(points["state"]) else []),
        *_labels(measured),
    ]
    chart: Any = panels(
        named(row, *layers),
        points,
        *case_selects(points, keys, parse_case(facts.study.headline)),
        clock_select(facts, points, value),
        filters=[shown(points, keys)],
    )
    return _finished(chart, facts, points)


def _intervals(measured: alt.Chart, value: str) -> list[alt.Chart]:
    """A rule with a tick at each end that it is drawn to."""
    reaching = within_reach(measured, value)
    return [
        reaching.mark_rule(style="interval", strokeWidth=1.2).encode(x="begin:Q", x2="reach:Q"),
        *(
            drawn_whole(reaching, value, end)
            .mark_tick(style="interval", thickness=1, size=9)
            .encode(x=f"{end}:Q")
            for end in ENDS
        ),
    ]


def _ceilings(facts: StudyFacts, measured: alt.Chart, value: str) -> list[alt.Chart]:
    """A tick in the row of each ceiling, and a rule through the whole panel for each that bounds
    every step."""
    study = facts.study
    ceilings = study.with_role("ceiling")
    if not ceilings:
        return []
    bounding = [study.ceilings_of(step) for step in study.with_role("step")]
    of_all = [one.name for one in ceilings if all(one in some for some in bounding)]
    valid = f"indexof({of_all}, datum.variant) >= 0 && isValid(datum.{value})"
    rules = alt.Chart().transform_filter(valid).mark_rule(style="ceiling", strokeDash=[5, 3])
    return [
        *([rules.encode(x=f"{value}:Q")] if of_all else []),
        measured.transform_filter("datum.role === 'ceiling'")
        .mark_tick(style="ceiling", thickness=3, size=14, cursor="pointer")
        .encode(x=f"{value}:Q"),
    ]


def _runs(measured: alt.Chart) -> alt.Chart:
    """A dot a run, where there are several."""
    mark = run_by_run(measured).mark_point(style="interval", size=10, filled=True, opacity=0.7)
    dots: alt.Chart = mark.encode(x="of_run:Q")
    return dots


def _published(base: alt.Chart, value: str) -> alt.Chart:
    shape = alt.Shape(
        "state:N",
        scale=alt.Scale(domain=["published"], range=["diamond"]),
        legend=alt.Legend(orient="top", title=None),
    )
    published = base.transform_filter("datum.state === 'published'")
    mark = published.mark_point(style="published", filled=False, size=75, strokeWidth=1.6)
    placed: alt.Chart = mark.encode(x=f"{value}:Q", shape=shape)
    return placed


def _axis(facts: StudyFacts, value: str) -> alt.X:
    if facts.figures.are_rates:
        scale = alt.Scale(zero=True)
        return alt.X(f"{value}:Q", title="payload rate, GB/s", scale=scale, stack=None)
    scale, axis = alt.Scale(type="log"), si_axis("s", grid=True)
    return alt.X(f"{value}:Q", title="time, s", scale=scale, axis=axis)


def _labels(measured: alt.Chart) -> list[alt.Chart]:
    """The figures in a column right of the plot, one below the other."""
    figure = (
        f"(compact ? datum.short : datum.label) + {SHARE}"
        " + (datum.state === 'stale' ? (compact ? ' *' : ' stale') : '')"
    )
    has_figure = "datum.state === 'measured' || datum.state === 'stale'"
    return [
        measured.transform_filter(has_figure)
        .mark_text(align="left", dx=10, text={"expr": figure})
        .encode(x=alt.value("width")),
        measured.transform_filter(f"!({has_figure})")
        .mark_text(align="left", dx=4, style="quiet", fontStyle="italic")
        .encode(x=alt.value(0), text="short:N"),
    ]


def _finished(chart: Any, facts: StudyFacts, points: pd.DataFrame) -> Chart:
    measure = "payload rate in GB/s" if facts.figures.are_rates else "time"
    description = (
        f"{facts.study.title}: {measure} of every variant with its {INTERVAL}, a panel for each"
        f" of {len(facts.machines)} machines, ceilings as dashed rules. No interval of a rate"
        " exceeds its ceiling or link unless the figure does; the tooltip says where one was cut."
    )
    share = SHARE_LETTERS if points["share"].notna().any() else 0
    name, label, short = (
        int(points[column].str.len().max()) for column in ("variant", "label", "short")
    )
    names = min(LABEL_LIMIT_PX, NAME_PX * name)
    wide = round(names + TEXT_PX * (label + share) + BESIDE_PX)
    return finish_rows(chart, description, wide, round(TEXT_PX * (short + share)))
