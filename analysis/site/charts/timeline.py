"""What host and GPU do while an operation runs: calls and GPU work as bars over time."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.base.quantities import quantity, whole
from analysis.site.charts.theme import Chart, finish, present, select, text_tooltip
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.captures import STALE, Capture, kernel_name
from analysis.site.facts.study_facts import StudyFacts

LANE_PX: Final = 44
HOST: Final = "host"
KINDS: Final = ["host call", "kernel", "memcpy", "memset"]
WINDOWS_US: Final = [10, 100, 1_000, 10_000, 100_000]
LABELLED_FROM: Final = 0.15
"""Bars of at least this share of the axis carry their name."""

_WHOLE: Final = "window_us === null"
_FIRST_US: Final = f"({_WHOLE} ? 0 : min(window_us, 0))"
_LAST_US: Final = f"({_WHOLE} ? datum.total_us : max(window_us, 0))"
_SHARE: Final = f"((min(datum.until_us, {_LAST_US}) - datum.label_us) / ({_LAST_US} - {_FIRST_US}))"
"""What of the axis is right of a bar's name. A window below 0 is counted from the last event."""


def timeline_chart(facts: StudyFacts) -> Chart | None:
    """A row a lane, host above GPU, of one variant on one machine; None without timelines."""
    events = timeline_events(facts)
    if events.empty:
        return None
    base = (
        alt.Chart()
        .transform_joinaggregate(total_us="max(end_us)")
        .transform_calculate(shift_us=f"!({_WHOLE}) && window_us < 0 ? datum.total_us : 0")
        .transform_calculate(
            from_us="datum.start_us - datum.shift_us", until_us="datum.end_us - datum.shift_us"
        )
        .transform_calculate(label_us=f"max(datum.from_us, {_FIRST_US})")
        .encode(x=_along("from_us"), y=_lanes(events), href="href:N", tooltip=_tooltip())
    )
    bars = base.mark_bar(
        height=LANE_PX // 2, strokeWidth=1, fillOpacity=0.45, clip=True, cursor="pointer"
    ).encode(
        x2="until_us:Q",
        **kind_colours(events),
        opacity=alt.condition(f"datum.state === '{STALE}'", alt.value(0.5), alt.value(1)),
    )
    names = base.transform_filter(f"{_SHARE} > {LABELLED_FROM}").mark_text(
        align="left",
        baseline="middle",
        dx=5,
        clip=True,
        cursor="pointer",
        limit={"expr": f"width * {_SHARE} - 8"},
    )
    chart: Any = (
        alt.layer(bars, names.encode(x=_along("label_us"), text="name:N"), data=events)
        .properties(height=alt.Step(LANE_PX))
        .add_params(*_selects(facts, events))
        .transform_filter("datum.machine === machine_shown && datum.variant === variant_shown")
    )
    description = (
        f"{facts.study.title}: calls of the host and work of the GPU in one launch of a variant,"
        " over time."
    )
    return finish(chart, description, margin=100, compact_margin=90)


def timeline_events(facts: StudyFacts) -> pd.DataFrame:
    """Every event of every timeline of the study: times in µs, what it is, and whether stale."""
    frames = [
        _events(facts, machine, variant.name, capture)
        for machine in facts.machines
        for variant in facts.study.variants
        if (capture := facts.captures.find(machine, variant, "timeline")).is_there
    ]
    frames = [frame for frame in frames if not frame.empty]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _events(facts: StudyFacts, machine: str, name: str, capture: Capture) -> pd.DataFrame:
    events = capture.events
    streams = events["stream"].map(lambda stream: f"stream {stream:.0f}", na_action="ignore")
    return pd.DataFrame(
        {
            "machine": machine,
            "variant": name,
            "lane": streams.astype("object").fillna(HOST),
            "kind": events["kind"],
            "name": events["name"].map(kernel_name),
            "start_us": events["start"] * 1e6,
            "end_us": events["end"] * 1e6,
            "duration": [quantity(value, "s") for value in events["end"] - events["start"]],
            "bytes": [
                "not recorded" if pd.isna(v) else quantity(float(v), "B") for v in events["bytes"]
            ],
            "state": capture.state,
            "case": capture.case,
            "href": samples_address(machine, facts.study.name, name, capture.case),
        }
    )


def _selects(facts: StudyFacts, events: pd.DataFrame) -> list[alt.Parameter]:
    """Machine, variant, at first the fastest step, and what to show: all, the start or the end."""
    captured = set(zip(events["machine"], events["variant"], strict=True))
    machines = list(dict.fromkeys(events["machine"]))
    variants = present(facts.study.variant_names, events["variant"])
    first = [name for name in variants if (machines[0], name) in captured]
    chosen = facts.study.goal if facts.study.goal in first else first[0]
    ends = [end for end in WINDOWS_US if end < events["end_us"].max()]
    windows = [None, *ends, *(-end for end in ends)]
    parts = [f"the {end} {whole(width)} µs" for end in ("first", "last") for width in ends]
    labels = ["whole launch", *parts]
    return [
        select("machine_shown", "machine", machines, machines[0]),
        select("variant_shown", "variant", variants, chosen),
        select("window_us", "show", windows, None, labels=labels),
    ]


def _along(field: str) -> alt.X:
    scale = alt.Scale(
        domainMin={"expr": _FIRST_US},
        domainMax={"expr": f"{_WHOLE} ? null : max(window_us, 0)"},
        nice=False,
    )
    axis = alt.Axis(labelOverlap="greedy", labelSeparation=12)
    title = "µs from the start; below 0, to the end"
    return alt.X(f"{field}:Q", title=title, scale=scale, axis=axis)


def _lanes(events: pd.DataFrame) -> alt.Y:
    lanes = sorted(set(events["lane"]), key=lambda lane: (lane != HOST, len(lane), lane))
    axis = alt.Axis(grid=False, ticks=False, domain=False, labelPadding=6)
    return alt.Y("lane:N", sort=lanes, title=None, axis=axis)


def kind_colours(events: pd.DataFrame) -> dict[str, alt.Fill | alt.Stroke]:
    """Fill and stroke of bars: one colour a kind of event, the same in every chart; those that
    occur are explained."""
    kinds = present(KINDS, events["kind"])
    legend = alt.Legend(orient="top", title=None, symbolType="square", values=kinds)
    scale = alt.Scale(domain=KINDS)
    return {
        "fill": alt.Fill("kind:N", scale=scale, legend=legend),
        "stroke": alt.Stroke("kind:N", scale=scale, legend=legend),
    }


def _tooltip() -> list[alt.Tooltip]:
    start = alt.Tooltip("start_us:Q", title="starts at, µs", format=".1f")
    return [*text_tooltip("name", "kind", "duration", "bytes", "lane", "state"), start]
