"""What host and GPU do while an operation runs: calls and GPU work as bars over time."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.base.quantities import quantity
from analysis.site.charts.theme import Chart, Select, colour, faded_if_stale, present
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.captures import Capture, kernel_name
from analysis.site.facts.study_facts import StudyFacts

LANE_PX: Final = 44
HOST: Final = "host"
KINDS: Final = ["host call", "kernel", "memcpy", "memset"]
MAX_EVENTS: Final = 800
"""A timeline ends after this number of events: the rest of a launch repeats them."""
EVENT_COLUMNS: Final = {
    **{name: name for name in ("name", "kind", "duration", "bytes", "lane", "state")},
    "starts": "starts at",
}


def timeline_chart(facts: StudyFacts) -> Chart | None:
    """A row a lane, host above GPU, of one variant on one machine; None without timelines."""
    events = timeline_events(facts)
    if events.empty:
        return None
    lanes = sorted(set(events["lane"]), key=lambda lane: (lane != HOST, len(lane), lane))
    variants = present(facts.study.variant_names, events["variant"])
    machine = events["machine"].iloc[0]
    captured = set(events.loc[events["machine"] == machine, "variant"])
    start = facts.study.goal if facts.study.goal in captured else None
    names = {variant.name: variant.title for variant in facts.study.variants}
    events = events.assign(
        title=events["variant"].map(names), place=events["variant"].map(variants.index)
    ).sort_values("place", kind="stable")
    description = (
        f"{facts.study.title}: calls of the host and work of the GPU in one launch of a variant,"
        f" over time; at most the first {MAX_EVENTS} events."
    )
    select = Select("title", "variant", names.get(start or ""))
    drawing = event_bars(events, lanes)
    return Chart(drawing, events, description, EVENT_COLUMNS, [select])


def event_bars(events: pd.DataFrame, lanes: list[str]) -> Any:
    """A bar an event in its lane, in the colour of its kind."""
    kinds = present(KINDS, events["kind"])
    axis = alt.Axis(grid=False, ticks=False, domain=False, labelPadding=6)
    bars = alt.Chart().mark_bar(height=LANE_PX // 2, strokeWidth=0.5, stroke="gray")
    return bars.encode(
        x=alt.X("start_us:Q", title="µs from the start", scale=alt.Scale(nice=False)),
        x2="end_us:Q",
        y=alt.Y("lane:N", sort=lanes, title=None, axis=axis),
        color=colour("kind", KINDS, alt.Legend(title=None, values=kinds)),
        opacity=faded_if_stale(),
    ).properties(height=alt.Step(LANE_PX))


def timeline_events(facts: StudyFacts) -> pd.DataFrame:
    """The first MAX_EVENTS events of every timeline of the study: times in µs, what they are, and
    whether stale."""
    frames = [
        _events(facts, machine, variant.name, capture)
        for machine in facts.machines
        for variant in facts.study.variants
        if (capture := facts.captures.find(machine, variant, "timeline")).is_there
    ]
    frames = [frame for frame in frames if not frame.empty]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def _events(facts: StudyFacts, machine: str, name: str, capture: Capture) -> pd.DataFrame:
    events = capture.events.sort_values("start").head(MAX_EVENTS)
    streams = events["stream"].map(lambda stream: f"stream {stream:.0f}", na_action="ignore")
    return pd.DataFrame(
        {
            "machine": machine,
            "variant": name,
            "lane": streams.astype("object").fillna(HOST),
            "kind": events["kind"],
            "name": events["name"].map(kernel_name),
            "start_us": (events["start"] * 1e6).round(3),
            "end_us": (events["end"] * 1e6).round(3),
            "starts": [quantity(value, "s") for value in events["start"]],
            "duration": [quantity(value, "s") for value in events["end"] - events["start"]],
            "bytes": [
                "not recorded" if pd.isna(v) else quantity(float(v), "B") for v in events["bytes"]
            ],
            "state": capture.state,
            "href": samples_address(machine, facts.study.name, name, capture.case),
        }
    )
