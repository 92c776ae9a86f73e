"""Parts of the host's time, timelines of the first and last step, and the cost of small and
misaligned fragments."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    EVENT_COLUMNS,
    HOST,
    MARK_PX,
    Chart,
    MeasuredRow,
    StudyFacts,
    colour,
    event_bars,
    faded_if_stale,
    part_chart,
    part_rows,
    row_chart,
    samples_address,
    timeline_events,
)
from analysis.api.quantities import digits, quantity
from analysis.api.study import Variant, parse_case

FIRST, LAST = "s0_everything_per_chunk", "s4_batched"
VOLUME: Final = 256 * 2**20
"""Payload in bytes of the cases that measure the kernel itself."""
PART_COLUMNS: Final = {
    "variant": "variant",
    "time": "time",
    "all_parts": "all parts",
    "state": "state",
}


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`parts`, `part_shares`, `first_and_last`, `fragments` and `alignment`, as far as measured."""
    return {
        "parts": _parts(facts, chunk_parts(facts), is_share=False),
        "part_shares": _parts(facts, chunk_parts(facts), is_share=True),
        "first_and_last": _first_and_last(facts),
        "fragments": _fragments(facts),
        "alignment": _alignment(facts),
    }


def chunk_parts(facts: StudyFacts) -> pd.DataFrame:
    """Parts of the call in the headline case: µs per chunk, and share of the call."""
    chunks = int(parse_case(facts.study.headline)["chunks"])
    rows = part_rows(facts)
    rows = rows[rows["case"] == facts.study.headline]
    return rows.assign(
        us=rows["seconds"] / chunks * 1e6,
        time=[quantity(seconds / chunks, "s") for seconds in rows["seconds"]],
        all_parts=[quantity(whole / chunks, "s") for whole in rows["whole"]],
    )


def _parts(facts: StudyFacts, rows: pd.DataFrame, *, is_share: bool) -> Chart | None:
    """Stacked bars of the parts: in µs for the steps, or as shares for all variants."""
    what = f"{facts.study.title}: host time of a chunk by call, stacked"
    if is_share:
        axis, whole = alt.Axis(format="%"), alt.Scale(domain=[0, 1])
        x = alt.X("share:Q", title="share of the call", axis=axis, scale=whole, stack="zero")
        return part_chart(facts, rows, x, f"{what}, as shares.", PART_COLUMNS, figure="all_parts")
    rows = rows[rows["role"] == "step"]
    x = alt.X("us:Q", title="host time per chunk, µs", stack="zero")
    return part_chart(facts, rows, x, f"{what}.", PART_COLUMNS, figure="all_parts")


def fragment_parts(facts: StudyFacts) -> pd.DataFrame:
    """Parts of the last step in µs, by bytes per `fragment`; otherwise the headline case."""
    headline = parse_case(facts.study.headline)
    sizes = {
        case.id: case.number("fragment")
        for case in facts.study.variant(LAST).cases
        if {**case.values, "fragment": headline["fragment"]} == headline
    }
    rows = part_rows(facts)
    rows = rows[(rows["variant"] == LAST) & rows["case"].isin(list(sizes))]
    return rows.assign(
        fragment=[f"{sizes[case]:,} B" for case in rows["case"]],
        us=rows["seconds"] * 1e6,
        time=[quantity(seconds, "s") for seconds in rows["seconds"]],
        all_parts=[quantity(whole, "s") for whole in rows["whole"]],
    )


def _fragments(facts: StudyFacts) -> Chart | None:
    """Stacked bars: the parts of the last step, one row per fragment size."""
    rows = fragment_parts(facts)
    if rows["fragment"].nunique() < 2:
        return None
    x = alt.X("us:Q", title="host time of all chunks, µs", stack="zero")
    what = f"{facts.study.title}: host time of the last step by call and fragment size, stacked."
    sizes = list(dict.fromkeys(rows["fragment"]))
    rows = rows.assign(name=rows["fragment"])
    columns = {"fragment": "fragment", **PART_COLUMNS}
    return part_chart(
        facts, rows, x, what, columns, row="fragment", order=sizes, figure="all_parts"
    )


def _first_and_last(facts: StudyFacts) -> Chart | None:
    """Host and GPU in the first and last step on a common time axis, one panel each."""
    events = timeline_events(facts)
    if events.empty:
        return None
    events = events[events["variant"].isin([FIRST, LAST])]
    if events["variant"].nunique() < 2:
        return None
    # Each chunk of the first step has a new stream; one lane shows them all.
    device = events["lane"].where(events["lane"] == HOST, "GPU")
    step = events["variant"].map({FIRST: "first step, ", LAST: "last step, "})
    events = events.assign(lane=step + device)
    lanes = [f"{step} step, {lane}" for step in ("first", "last") for lane in (HOST, "GPU")]
    description = (
        f"{facts.study.title}: host calls and GPU work of the first and the last step over one time"
        " axis."
    )
    return Chart(event_bars(events, lanes), events, description, EVENT_COLUMNS)


def alignment_rows(facts: StudyFacts) -> pd.DataFrame:
    """One row per machine, variant and source alignment, over VOLUME: GB/s by device time."""
    rows = []
    for machine in facts.machines:
        for variant in facts.study.subjects:
            for source, row in _volume_times(facts, machine, variant).items():
                rows.append(
                    {
                        "machine": machine,
                        "variant": variant.name,
                        "name": f"{variant.title}, off by {source} B",
                        "figure": f"{digits(VOLUME / row.median / 1e9)} GB/s",
                        "source": f"off by {source} B",
                        "rate": VOLUME / row.median / 1e9,
                        "state": "stale" if row.stale else "measured",
                        "href": samples_address(
                            machine, facts.study.name, variant.name, row.case, row.metric
                        ),
                    }
                )
    return pd.DataFrame(rows)


def _volume_times(facts: StudyFacts, machine: str, variant: Variant) -> dict[int, MeasuredRow]:
    """Device times over VOLUME, by the source's offset from a 16-byte boundary."""
    return {
        case.number("src"): row
        for case in variant.cases
        if case.payload_bytes == VOLUME
        and (row := facts.find(machine, variant.name, case.id, "gpu_time")) is not None
    }


def _alignment(facts: StudyFacts) -> Chart | None:
    """Bars: the rate over 256 MiB, for aligned fragments and fragments misaligned by a byte."""
    rows = alignment_rows(facts)
    if rows.empty:
        return None
    bars = alt.Chart().mark_bar(height=11, yOffset=MARK_PX)
    bars = bars.encode(
        x=alt.X("rate:Q", title="payload rate by device time, GB/s"),
        color=colour("source", list(dict.fromkeys(rows["source"]))),
        opacity=faded_if_stale(),
    )
    drawing = row_chart("name", list(dict.fromkeys(rows["name"])), bars, figure="figure")
    description = (
        f"{facts.study.title}: payload rate over 256 MiB of aligned and misaligned fragments,"
        " and of one plain copy."
    )
    columns = {"variant": "variant", "source": "source", "figure": "rate", "state": "state"}
    return Chart(drawing, rows, description, columns)
