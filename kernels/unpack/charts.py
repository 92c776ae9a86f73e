"""Charts of this study: parts of the host's time, and timelines of the first and last step."""

from __future__ import annotations

import altair as alt

from analysis.api.charts import (
    EVENT_COLUMNS,
    HOST,
    Chart,
    StudyFacts,
    event_bars,
    part_chart,
    part_rows,
    timeline_events,
)
from analysis.api.quantities import quantity
from analysis.api.study import parse_case

FIRST, LAST = "s0_everything_per_chunk", "s4_batched"


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`parts` of the call in the headline case, in µs per chunk, and `first_and_last`."""
    rows = part_rows(facts)
    rows = rows[(rows["case"] == facts.study.headline) & (rows["role"] == "step")]
    chunks = int(parse_case(facts.study.headline)["chunks"])
    rows = rows.assign(
        us=rows["seconds"] / chunks * 1e6,
        time=[quantity(seconds / chunks, "s") for seconds in rows["seconds"]],
        all_parts=[quantity(whole / chunks, "s") for whole in rows["whole"]],
    )
    us = alt.X("us:Q", title="host time per chunk, µs")
    parts = part_chart(facts, rows, us, "host time of a chunk by call, stacked.")
    return {"parts": parts, "first_and_last": first_and_last(facts)}


def first_and_last(facts: StudyFacts) -> Chart | None:
    """Host and GPU in the first and last step on a common time axis, one panel each."""
    events = timeline_events(facts)
    if events.empty or not {FIRST, LAST} <= {*events["variant"]}:
        return None
    events = events[events["variant"].isin([FIRST, LAST])]
    # Each chunk of the first step has a new stream; one lane shows them all.
    device = events["lane"].where(events["lane"] == HOST, "GPU")
    step = events["variant"].map({FIRST: "first", LAST: "last"})
    events = events.assign(lane=step + " step, " + device)
    lanes = [f"{step} step, {lane}" for step in ("first", "last") for lane in (HOST, "GPU")]
    what = "host calls and GPU work of the first and the last step over one time axis."
    return Chart(event_bars(events, lanes), events, what, EVENT_COLUMNS)
