"""Parts of the host's time, timelines of the first and last step, and the cost of small and
misaligned fragments."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    HOST,
    ROW_PX,
    WIDE_LABELS,
    Chart,
    MeasuredRow,
    StudyFacts,
    finish,
    finish_rows,
    kind_colours,
    named,
    panels,
    part_bars,
    part_rows,
    samples_address,
    select,
    timeline_events,
    variant_rows,
)
from analysis.api.quantities import quantity
from analysis.api.study import Variant, parse_case

FIGURE_PX: Final = 60
"""Width of a figure beside a bar."""
FIRST, LAST = "s0_everything_per_chunk", "s4_batched"
VOLUME: Final = 256 * 2**20
"""Payload in bytes of the cases that measure the kernel itself."""


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
        a_chunk=[quantity(seconds / chunks, "s") for seconds in rows["seconds"]],
        all_parts=[quantity(whole / chunks, "s") for whole in rows["whole"]],
    ).drop(columns=["seconds", "whole"])


def _parts(facts: StudyFacts, rows: pd.DataFrame, *, is_share: bool) -> Chart | None:
    """Stacked bars of the parts: in µs for the steps, or as shares for all variants."""
    if not is_share:
        rows = rows[rows["role"] == "step"]
    if rows.empty:
        return None
    if is_share:
        axis, whole = alt.Axis(format="%"), alt.Scale(domain=[0, 1])
        along = alt.X("share:Q", title="share of the call", axis=axis, scale=whole, stack="zero")
    else:
        along = alt.X("us:Q", title="host time per chunk, µs", stack="zero")
    tips = {
        **{name: name for name in ("variant", "machine", "part", "state")},
        "a_chunk": "per chunk",
        "all_parts": "all parts",
    }
    row = variant_rows(facts.study.variant_names, rows)
    bars = part_bars(facts, rows, along, row, tips)
    chart = panels(named(row, bars, _totals(row)), rows)
    description = (
        f"{facts.study.title}: host time of a chunk by call, stacked, "
        + ("as shares, " if is_share else "")
        + f"a panel for each of {len(facts.machines)} machines."
    )
    return finish_rows(chart, description, margin=270, right_px=FIGURE_PX)


def _totals(row: alt.Y) -> alt.Chart:
    """The `all_parts` of each bar, beside it."""
    totals: alt.Chart = (
        alt.Chart()
        .transform_filter("datum.order === 0")
        .mark_text(align="left", dx=10)
        .encode(y=row, x=alt.value("width"), text="all_parts:N")
    )
    return totals


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
        fragment=rows["case"].map(sizes),
        us=rows["seconds"] * 1e6,
        time=[quantity(seconds, "s") for seconds in rows["seconds"]],
        all_parts=[quantity(whole, "s") for whole in rows["whole"]],
    ).drop(columns=["seconds", "whole"])


def _fragments(facts: StudyFacts) -> Chart | None:
    """Stacked bars: the parts of the last step, one row per fragment size."""
    rows = fragment_parts(facts)
    if rows["fragment"].nunique() < 2:
        return None
    along = alt.X("us:Q", title="host time of all chunks, µs", stack="zero")
    axis = alt.Axis(labelFont=WIDE_LABELS, format=",", domain=False, ticks=False, grid=False)
    row = alt.Y("fragment:O", title="bytes per fragment", axis=axis)
    tips = {
        **{name: name for name in ("fragment", "machine", "part", "time", "state")},
        "all_parts": "all parts",
    }
    bars = part_bars(facts, rows, along, row, tips)
    layers = alt.layer(bars, _totals(row), height=ROW_PX * rows["fragment"].nunique())
    description = f"{facts.study.title}: host time of {LAST} by call and fragment size, stacked."
    return finish(panels(layers, rows), description, margin=170, compact_margin=150)


def _first_and_last(facts: StudyFacts) -> Chart | None:
    """Host and GPU in the first and last step on a common time axis, one panel each."""
    events = timeline_events(facts)
    if events.empty:
        return None
    events = events[events["variant"].isin([FIRST, LAST])]
    if events["variant"].nunique() < 2:
        return None
    # Each chunk of the first step has a new stream; one lane shows them all.
    events = events.assign(lane=events["lane"].where(events["lane"] == HOST, "GPU"))
    machines = list(dict.fromkeys(events["machine"]))
    fields = ("name", "kind", "duration", "bytes", "state")
    lanes = alt.Axis(grid=False, ticks=False, domain=False)
    bars = (
        alt.Chart()
        .mark_bar(height=20, strokeWidth=1, fillOpacity=0.45, clip=True, cursor="pointer")
        .encode(
            x=alt.X("start_us:Q", title="µs from the start"),
            x2="end_us:Q",
            y=alt.Y("lane:N", sort=[HOST, "GPU"], title=None, axis=lanes),
            **kind_colours(events),
            href="href:N",
            tooltip=[
                *(alt.Tooltip(f"{name}:N", title=name) for name in fields),
                alt.Tooltip("start_us:Q", title="starts at, µs", format=".1f"),
            ],
        )
    )
    chart: Any = (
        bars.properties(height=72)
        .facet(
            facet=alt.Facet("variant:N", sort=[FIRST, LAST], title=None),
            columns=1,
            data=events,
        )
        .add_params(select("machine_shown", "machine", machines, machines[0]))
        .transform_filter("datum.machine === machine_shown")
    )
    description = (
        f"{facts.study.title}: host calls and GPU work of {FIRST} and {LAST} over one time axis."
    )
    return finish(chart, description, margin=100, compact_margin=90)


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
                        "source": f"{source} past a boundary",
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
        and (row := facts.figures.find(machine, variant.name, case.id, "gpu_time")) is not None
    }


def _alignment(facts: StudyFacts) -> Chart | None:
    """Bars: the rate over 256 MiB, for aligned fragments and fragments misaligned by a byte."""
    rows = alignment_rows(facts)
    if rows.empty:
        return None
    row = variant_rows(facts.study.variant_names, rows, 2 * ROW_PX)
    legend = alt.Legend(orient="top", title="source, bytes", symbolType="square")
    fields = ("variant", "machine", "source", "state")
    base = alt.Chart().encode(y=row, yOffset="source:N")
    bars = base.mark_bar(cursor="pointer").encode(
        x=alt.X("rate:Q", title="payload rate by device time, GB/s"),
        color=alt.Color("source:N", legend=legend),
        href="href:N",
        opacity=alt.condition("datum.state === 'stale'", alt.value(0.35), alt.value(0.9)),
        tooltip=[
            *(alt.Tooltip(f"{name}:N", title=name) for name in fields),
            alt.Tooltip("rate:Q", title="rate, GB/s", format=".4~r"),
        ],
    )
    rates = base.mark_text(align="left", dx=10).encode(
        x=alt.value("width"), text=alt.Text("rate:Q", format=".4~r")
    )
    chart = panels(named(row, bars, rates, px=2 * ROW_PX), rows)
    description = (
        f"{facts.study.title}: payload rate over 256 MiB of aligned and misaligned fragments,"
        " and of one plain copy."
    )
    return finish_rows(chart, description, margin=260, right_px=FIGURE_PX, px=2 * ROW_PX)
