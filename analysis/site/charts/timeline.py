"""What host and GPU do while an operation runs: calls and GPU work as bars over time."""

from itertools import product
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.base.quantities import quantity
from analysis.site.charts.theme import Chart, Select, colour, faded_if_stale, present
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.study_facts import StudyFacts
from analysis.toolchain.reports import kernel_name

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
    first = events[events["machine"] == events["machine"].iloc[0]]
    goal = first.loc[first["variant"] == facts.study.goal, "title"]
    description = f"calls of the host and work of the GPU over time, at most {MAX_EVENTS} events."
    select = Select("title", "variant", next(iter(goal), None))
    return Chart(event_bars(events, lanes), events, description, EVENT_COLUMNS, [select])


def event_bars(events: pd.DataFrame, lanes: list[str]) -> Any:
    """A bar an event in its lane, in the colour of its kind."""
    legend = alt.Legend(title=None, values=present(KINDS, events["kind"]))
    axis = alt.Axis(grid=False, ticks=False, domain=False, labelPadding=6)
    bars = alt.Chart().mark_bar(height=LANE_PX // 2, strokeWidth=0.5, stroke="gray")
    return bars.encode(
        x=alt.X("start_us:Q", title="µs from the start", scale=alt.Scale(nice=False)),
        x2=alt.X2("end_us:Q"),
        y=alt.Y("lane:N", sort=lanes, title=None, axis=axis),
        color=colour("kind", KINDS, legend),
        opacity=faded_if_stale(),
    ).properties(height=alt.Step(LANE_PX))


def timeline_events(facts: StudyFacts) -> pd.DataFrame:
    """The first MAX_EVENTS events of every timeline, by variant: times in µs, what they are, and
    whether stale."""
    found = []
    for variant, machine in product(facts.study.variants, facts.machines):
        capture = facts.capture(machine, variant, "timeline")
        if capture.is_there:
            about = {"machine": machine, "variant": variant.name, "title": variant.title}
            href = samples_address(machine, facts.study.name, variant.name, capture.case)
            events = capture.events.sort_values("start").head(MAX_EVENTS)
            found.append(events.assign(**about, state=capture.state, href=href))
    if not found:
        return pd.DataFrame()
    events = pd.concat(found, ignore_index=True)
    streams = events["stream"].map(lambda stream: f"stream {stream:.0f}", na_action="ignore")
    sizes = events["bytes"].map(lambda size: quantity(size, "B"), na_action="ignore")
    return events.drop(columns=["start", "end", "stream"]).assign(
        lane=streams.astype("object").fillna(HOST),
        name=events["name"].map(kernel_name),
        start_us=(events["start"] * 1e6).round(3),
        end_us=(events["end"] * 1e6).round(3),
        starts=[quantity(value, "s") for value in events["start"]],
        duration=[quantity(value, "s") for value in events["end"] - events["start"]],
        bytes=sizes.astype("object").fillna("not recorded"),
    )
