"""Where the host's time goes, the timelines of the first and the last step, and the cost of small
and of misaligned fragments."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.charts.parts import part_bars, part_rows
from analysis.charts.theme import WIDE_LABELS, Chart, finish, panels, variant_rows
from analysis.charts.timeline import HOST, timeline_events
from analysis.facts.points import Context, Row, anchor
from analysis.quantities import digits, quantity
from analysis.study import Variant, parse_case

ROW_PX: Final = 25
FIRST, LAST = "s0_everything_per_chunk", "s4_batched"
VOLUME: Final = 256 * 2**20
"""Payload in bytes of the cases that show the speed of the kernel itself."""


def charts(context: Context) -> dict[str, Chart]:
    """`parts`, `part_shares`, `first_and_last`, `fragments` and `alignment`, as far as measured."""
    made = {
        "parts": _parts(context, chunk_parts(context), is_share=False),
        "part_shares": _parts(context, chunk_parts(context), is_share=True),
        "first_and_last": _first_and_last(context),
        "fragments": _fragments(context),
        "alignment": _alignment(context),
    }
    return {name: chart for name, chart in made.items() if chart is not None}


def chunk_parts(context: Context) -> pd.DataFrame:
    """Parts of the headline case, over all its chunks: µs per chunk and share of the call."""
    chunks = int(parse_case(context.study.headline)["chunks"])
    rows = part_rows(context)
    rows = rows[rows["case"] == context.study.headline]
    return rows.assign(
        us=rows["seconds"] / chunks * 1e6,
        a_chunk=[quantity(seconds / chunks, "s") for seconds in rows["seconds"]],
        all_parts=[f"{digits(whole / chunks * 1e6)} µs a chunk" for whole in rows["whole"]],
    ).drop(columns=["seconds", "whole"])


def _parts(context: Context, rows: pd.DataFrame, *, is_share: bool) -> Chart | None:
    """Stacked bars: the steps in µs, or all variants with parts as shares."""
    if not is_share:
        rows = rows[rows["role"] == "step"]
    if rows.empty:
        return None
    if is_share:
        axis, whole = alt.Axis(format="%"), alt.Scale(domain=[0, 1])
        along = alt.X("share:Q", title="share of the call", axis=axis, scale=whole, stack="zero")
    else:
        along = alt.X("us:Q", title="µs of the host a chunk", stack="zero")
    told = {
        **{name: name for name in ("variant", "machine", "part", "state")},
        "a_chunk": "a chunk",
        "all_parts": "all parts",
    }
    row = variant_rows(context.study.variant_names, rows)
    bars = part_bars(context, rows, along, row, told)
    chart = _with_totals(bars, row, rows, ROW_PX * rows["variant"].nunique())
    description = (
        f"{context.study.title}: what the calls of the host take of a chunk, stacked, "
        + ("as shares, " if is_share else "")
        + f"a panel for each of {len(context.machines)} machines."
    )
    return finish(chart, description, margin=310, compact_margin=195)


def _with_totals(bars: alt.Chart, row: alt.Y, rows: pd.DataFrame, height: int) -> Any:
    """A panel per machine: the bars, and next to each the `all_parts` of its first part."""
    totals = (
        alt.Chart()
        .transform_filter("datum.order === 0")
        .mark_text(align="left", dx=10)
        .encode(y=row, x=alt.value("width"), text="all_parts:N")
    )
    return panels(alt.layer(bars, totals).properties(height=height), rows)


def fragment_parts(context: Context) -> pd.DataFrame:
    """Parts of the last step in µs by `fragment` size in bytes, otherwise as in the headline
    case."""
    headline = parse_case(context.study.headline)
    sizes = {
        case.id: case.number("fragment")
        for case in context.study.variant(LAST).cases
        if {**case.values, "fragment": headline["fragment"]} == headline
    }
    rows = part_rows(context)
    rows = rows[(rows["variant"] == LAST) & rows["case"].isin(list(sizes))]
    return rows.assign(
        fragment=rows["case"].map(sizes),
        us=rows["seconds"] * 1e6,
        time=[quantity(seconds, "s") for seconds in rows["seconds"]],
        all_parts=[quantity(whole, "s") for whole in rows["whole"]],
    ).drop(columns=["seconds", "whole"])


def _fragments(context: Context) -> Chart | None:
    """Stacked bars: the parts of the last step, a row per fragment size."""
    rows = fragment_parts(context)
    if rows["fragment"].nunique() < 2:
        return None
    along = alt.X("us:Q", title="µs of the host, all chunks", stack="zero")
    axis = alt.Axis(labelFont=WIDE_LABELS, format=",", domain=False, ticks=False, grid=False)
    row = alt.Y("fragment:O", title="bytes of a fragment", axis=axis)
    told = {
        **{name: name for name in ("fragment", "machine", "part", "time", "state")},
        "all_parts": "all parts",
    }
    bars = part_bars(context, rows, along, row, told)
    chart = _with_totals(bars, row, rows, ROW_PX * rows["fragment"].nunique())
    description = (
        f"{context.study.title}: what the calls of the host take in {LAST} by the size of the"
        f" fragments, stacked, a panel for each of {len(context.machines)} machines."
    )
    return finish(chart, description, margin=170, compact_margin=150)


def _first_and_last(context: Context) -> Chart | None:
    """Host and GPU of the first and the last step on the same time axis, a panel each."""
    events = timeline_events(context)
    if events.empty:
        return None
    events = events[events["variant"].isin([FIRST, LAST])]
    if events["variant"].nunique() < 2:
        return None
    # Each stream of the first step lives for one chunk; together they are the work of the GPU.
    events = events.assign(lane=events["lane"].where(events["lane"] == HOST, "GPU"))
    machines = list(dict.fromkeys(events["machine"]))
    kinds = list(dict.fromkeys(events["kind"]))
    legend = alt.Legend(orient="top", title=None, symbolType="square")
    told = ("name", "kind", "duration", "bytes", "state")
    lanes = alt.Axis(grid=False, ticks=False, domain=False)
    bars = (
        alt.Chart()
        .mark_bar(height=20, strokeWidth=1, fillOpacity=0.45, clip=True, cursor="pointer")
        .encode(
            x=alt.X("start_us:Q", title="µs from the start"),
            x2="end_us:Q",
            y=alt.Y("lane:N", sort=[HOST, "GPU"], title=None, axis=lanes),
            fill=alt.Fill("kind:N", scale=alt.Scale(domain=kinds), legend=legend),
            stroke=alt.Stroke("kind:N", scale=alt.Scale(domain=kinds), legend=legend),
            href="href:N",
            tooltip=[
                *(alt.Tooltip(f"{name}:N", title=name) for name in told),
                alt.Tooltip("start_us:Q", title="starts at, µs", format=".1f"),
            ],
        )
    )
    options = alt.binding_select(options=machines, name="machine")
    chart: Any = (
        bars.properties(height=72)
        .facet(
            facet=alt.Facet(
                "variant:N", sort=[FIRST, LAST], title=None, header=alt.Header(labelAnchor="start")
            ),
            columns=1,
            data=events,
        )
        .add_params(alt.param(name="machine_shown", value=machines[0], bind=options))
        .transform_filter("datum.machine === machine_shown")
    )
    description = (
        f"{context.study.title}: host calls and GPU work of {FIRST} and {LAST} over one time axis."
    )
    return finish(chart, description, margin=100, compact_margin=90)


def alignment_rows(context: Context) -> pd.DataFrame:
    """One row per machine, variant and alignment of the source over VOLUME: GB/s by device time,
    and its shares of the rates of `one_copy` and of the same variant with everything aligned."""
    rows = []
    for machine in context.machines:
        copy = _volume_times(context, machine, context.study.variant("one_copy")).get(0)
        for variant in context.study.variants:
            times = _volume_times(context, machine, variant)
            for source, row in times.items():
                seconds = float(row["median"])
                rows.append(
                    {
                        "machine": machine,
                        "variant": variant.name,
                        "source": f"{source} behind a boundary",
                        "rate": VOLUME / seconds / 1e9,
                        "of one copy": _share(copy, seconds),
                        "of aligned": _share(times.get(0), seconds),
                        "state": "stale" if row["stale"] else "measured",
                        "href": f"data/#{anchor(machine, context.study.name, variant.name)}",
                    }
                )
    return pd.DataFrame(rows)


def _volume_times(context: Context, machine: str, variant: Variant) -> dict[int, Row]:
    """Device times over VOLUME by the offset of the source from a boundary."""
    return {
        case.number("src"): row
        for case in variant.cases
        if case.payload_bytes == VOLUME
        and (row := context.summary.get((machine, variant.name, case.id, "gpu_time"))) is not None
    }


def _share(other: Row | None, seconds: float) -> str:
    """The rate as a share of the other's rate."""
    return f"{float(other['median']) / seconds:.0%}" if other is not None else ""


def _alignment(context: Context) -> Chart | None:
    """Bars: the rate over 256 MiB of fragments that are aligned, and misaligned by one byte."""
    rows = alignment_rows(context)
    if rows.empty:
        return None
    names = [name for name in context.study.variant_names if name in set(rows["variant"])]
    row = variant_rows(names, rows)
    legend = alt.Legend(orient="top", title="source, bytes", symbolType="square")
    told = ("variant", "machine", "source", "of one copy", "of aligned", "state")
    base = alt.Chart().encode(y=row, yOffset="source:N")
    bars = base.mark_bar(cursor="pointer").encode(
        x=alt.X("rate:Q", title="payload rate by device time, GB/s"),
        color=alt.Color("source:N", legend=legend),
        href="href:N",
        opacity=alt.condition("datum.state === 'stale'", alt.value(0.35), alt.value(0.9)),
        tooltip=[
            *(alt.Tooltip(f"{name}:N", title=name) for name in told),
            alt.Tooltip("rate:Q", title="rate, GB/s", format=".4~r"),
        ],
    )
    shares = base.mark_text(align="left", dx=10).encode(x=alt.value("width"), text="of one copy:N")
    chart: Any = panels(alt.layer(bars, shares).properties(height=2 * ROW_PX * len(names)), rows)
    description = (
        f"{context.study.title}: payload rate over 256 MiB of aligned and misaligned fragments, and"
        " the share of one plain copy's."
    )
    return finish(chart, description, margin=260, compact_margin=195)
