"""Parts of the host's time, timelines of the first and last step, and misaligned fragments."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    EVENT_COLUMNS,
    HOST,
    Chart,
    StudyFacts,
    dot_chart,
    event_bars,
    part_chart,
    part_rows,
    timeline_events,
)
from analysis.api.quantities import digits, quantity
from analysis.api.study import parse_case

FIRST, LAST = "s0_everything_per_chunk", "s4_batched"
VOLUME: Final = 256 * 2**20
"""Payload in bytes of the cases that measure the kernel itself."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`parts`, `first_and_last` and `alignment`, as far as measured."""
    rows, what = chunk_parts(facts), "host time of a chunk by call, stacked"
    us = alt.X("us:Q", title="host time per chunk, µs")
    return {
        "parts": part_chart(facts, rows[rows["role"] == "step"], us, f"{what}."),
        "first_and_last": first_and_last(facts),
        "alignment": alignment(facts),
    }


def chunk_parts(facts: StudyFacts) -> pd.DataFrame:
    """Parts of the call in the headline case: µs per chunk."""
    rows = part_rows(facts)
    rows = rows[rows["case"] == facts.study.headline]
    chunks = int(parse_case(facts.study.headline)["chunks"])
    return rows.assign(
        us=rows["seconds"] / chunks * 1e6,
        time=[quantity(seconds / chunks, "s") for seconds in rows["seconds"]],
        all_parts=[quantity(whole / chunks, "s") for whole in rows["whole"]],
    )


def first_and_last(facts: StudyFacts) -> Chart | None:
    """Host and GPU in the first and last step on a common time axis, one panel each."""
    events = timeline_events(facts)
    if events.empty or not {FIRST, LAST} <= {*events["variant"]}:
        return None
    events = events[events["variant"].isin([FIRST, LAST])]
    # Each chunk of the first step has a new stream; one lane shows them all.
    device = events["lane"].where(events["lane"] == HOST, "GPU")
    events = events.assign(lane=events["variant"].map({FIRST: "first", LAST: "last"}))
    events = events.assign(lane=events["lane"] + " step, " + device)
    lanes = [f"{step} step, {lane}" for step in ("first", "last") for lane in (HOST, "GPU")]
    what = "host calls and GPU work of the first and the last step over one time axis."
    return Chart(event_bars(events, lanes), events, what, EVENT_COLUMNS)


def alignment(facts: StudyFacts) -> Chart | None:
    """The rate over 256 MiB by device time, for aligned fragments and fragments misaligned by
    a byte."""
    rows = facts.points
    rows = rows[(rows["payload_bytes"] == VOLUME) & (rows["metric"] == "gpu_time")]
    rows = rows[rows["rate"].notna() & (rows["state"] != "published")]
    source = "off by " + rows["case_src"].fillna(0).map("{:.0f} B".format)
    rows = rows.assign(
        name=rows["title"] + ", " + source,
        source=source,
        figure=[f"{digits(rate)} GB/s" for rate in rows["rate"]],
    )
    return dot_chart(
        rows,
        alt.X("rate:Q", title="payload rate by device time, GB/s", scale=alt.Scale(zero=True)),
        "name",
        [],
        "payload rate over 256 MiB of aligned and misaligned fragments, and of one plain copy.",
        {"variant": "variant", "source": "source", "figure": "rate", "state": "state"},
        by="source",
        figure="figure",
    )
