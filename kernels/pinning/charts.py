"""Charts of this study: pinning beside the waits of a neighbour, by variant, call and chunk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    Chart,
    MeasuredRow,
    StudyFacts,
    finish,
    finish_rows,
    line_colour,
    named,
    named_rows,
    panels,
    part_bars,
    part_rows,
    present,
    samples_address,
    select,
    si_axis,
    variant_rows,
)
from analysis.api.quantities import quantity
from analysis.api.study import parse_case

HEIGHT_PX: Final = 220
WAITS: Final = {
    "host_time": "until pinned",
    "call_worst": "neighbour's longest call meanwhile",
    "unpin_worst": "neighbour's longest call during unpinning",
}
STATISTICS: Final = {
    "call_median": "median",
    "call_p99": "99th percentile",
    "call_worst": "longest",
    "alone_worst": "longest alone",
}
CALLS: Final = {
    "copy": "copy",
    "launch": "launch",
    "info": "cudaMemGetInfo",
    "malloc": "cudaMalloc, cudaFree",
}
BESIDE: Final = {"process": "another process", "thread": "another thread"}
CALLS_MIB: Final = 512
"""Pinned while every kind of call is repeated."""
COMPARED: Final = ("host_alloc", "touched_by_threads", "chunks", "small_chunks")
"""Variants whose neighbours are asked for every kind of call."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`waits`, `calls`, `parts` and `chunk_sizes`, as far as measured."""
    return {
        "waits": _waits(facts, waits(facts)),
        "calls": _calls(facts, calls(facts)),
        "parts": _parts(facts),
        "chunk_sizes": _chunk_sizes(facts, chunk_sizes(facts)),
    }


def _rows(facts: StudyFacts, names: Mapping[str, str]) -> pd.DataFrame:
    """A row for each fresh or stale median of these metrics, with the keys of its case. `what` is
    the metric in words."""
    rows = [
        _row(facts, row, names[row.metric])
        for row in facts.figures.measured.values()
        if row.metric in names
    ]
    keys = ["mib", "beside", "calls", "chunk_mib", "threads"]
    columns = ["machine", "variant", "case", "what", "seconds", "time", "state", "href"]
    return pd.DataFrame(rows, columns=[*columns, *keys])


def _row(facts: StudyFacts, row: MeasuredRow, what: str) -> dict[str, object]:
    return {
        "machine": row.machine,
        "variant": row.variant,
        "case": row.case,
        "what": what,
        "seconds": row.median,
        "time": quantity(row.median, "s"),
        "state": "stale" if row.stale else "measured",
        "href": samples_address(row.machine, facts.study.name, row.variant, row.case, row.metric),
        **parse_case(row.case),
    }


def waits(facts: StudyFacts) -> pd.DataFrame:
    """Times to pin, and the longest calls of another process, by size and variant."""
    rows = _rows(facts, WAITS)
    subjects = [variant.name for variant in facts.study.subjects]
    of_process = (rows["beside"] == "process") & (rows["calls"] == "malloc")
    rows = rows[of_process & rows["chunk_mib"].isna() & rows["threads"].isna()]
    rows = rows[(rows["mib"] != CALLS_MIB) & rows["variant"].isin(subjects)]
    return rows.assign(gib=rows["mib"] / 1024)


def calls(facts: StudyFacts) -> pd.DataFrame:
    """Statistics of the calls of every neighbour, by call and variant."""
    rows = _rows(facts, STATISTICS)
    rows = rows[rows["variant"].isin(COMPARED) & rows["beside"].isin(list(BESIDE))]
    rows = rows[rows["mib"] == CALLS_MIB]
    rows = rows[rows["chunk_mib"].isna() & rows["threads"].isna()]
    return rows.assign(
        call=rows["calls"].map(CALLS) + " · " + rows["variant"],
        neighbour=rows["beside"].map(BESIDE),
    )


def chunk_sizes(facts: StudyFacts) -> pd.DataFrame:
    """Time to pin and longest call by the size of a chunk; the usual size is a constant."""
    rows = _rows(facts, WAITS)
    usual = facts.study.constants["chunk_mib"]
    size = parse_case(facts.study.headline)["mib"]
    rows = rows[(rows["variant"] == "chunks") & rows["threads"].isna() & (rows["mib"] == size)]
    rows = rows[(rows["beside"] == "process") & (rows["calls"] == "malloc")]
    rows = rows.assign(chunk_mib=rows["chunk_mib"].fillna(usual))
    return rows.sort_values("chunk_mib")


def _seconds(title: str) -> alt.X:
    return alt.X("seconds:Q", title=title, scale=alt.Scale(type="log"), axis=si_axis("s"))


def _tooltip(*names: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(f"{name}:N") for name in (*names, "machine", "case", "what", "time")]


def _dots(what: Mapping[str, str], row: alt.Y) -> alt.LayerChart:
    """A dot for each time, in the colour of what it is of."""
    dots = (
        alt.Chart()
        .mark_point(filled=True, size=75, cursor="pointer")
        .encode(
            x=_seconds("time"),
            y=row,
            color=line_colour("what", list(what.values()), None),
            shape=alt.condition("datum.state === 'stale'", alt.value("cross"), alt.value("circle")),
            href="href:N",
            tooltip=_tooltip("variant"),
        )
    )
    return named(row, dots)


def _waits(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """One row per variant: the time to pin and the longest calls of another process."""
    if rows.empty:
        return None
    sizes = sorted(rows["gib"].unique(), reverse=True)
    shown = select("gib_shown", "size", sizes, sizes[0], labels=[f"{size:g} GiB" for size in sizes])
    row = variant_rows(facts.study.variant_names, rows)
    dots = _dots(WAITS, row)
    chart = panels(dots, rows, shown, filters=["datum.gib === gib_shown"])
    what = "time to pin and longest CUDA call of another process, by variant"
    return finish_rows(chart, _described(facts, what), margin=170)


def _calls(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """One row per call and variant: median, 99th percentile and longest."""
    if rows.empty:
        return None
    labels = [f"{call} · {name}" for call in CALLS.values() for name in COMPARED]
    row = named_rows("call", present(labels, rows["call"]), limit_px=300)
    names = present(list(BESIDE.values()), rows["neighbour"])
    shown = select("neighbour_shown", "neighbour", names, names[0])
    dots = _dots(STATISTICS, row)
    chart = panels(dots, rows, shown, filters=["datum.neighbour === neighbour_shown"])
    what = "times of a neighbour's calls while memory is pinned, by kind of call and variant"
    return finish_rows(chart, _described(facts, what), margin=260)


def _described(facts: StudyFacts, what: str) -> str:
    return f"{facts.study.title}: {what}, for {len(facts.machines)} machines."


def _parts(facts: StudyFacts) -> Chart | None:
    """Stacked bars: touching and registering, in the headline case."""
    rows = part_rows(facts)
    rows = rows[rows["case"] == facts.study.headline]
    if rows.empty:
        return None
    rows = rows.assign(time=[quantity(seconds, "s") for seconds in rows["seconds"]])
    along = alt.X("seconds:Q", title="host time", stack="zero", axis=si_axis("s"))
    row = variant_rows(facts.study.variant_names, rows)
    tips = {name: name for name in ("variant", "machine", "part", "time", "state")}
    bars = part_bars(facts, rows, along, row, tips)
    chart = panels(named(row, bars), rows)
    what = "time of touching and of registering, stacked"
    return finish_rows(chart, _described(facts, what), margin=170)


def _chunk_sizes(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """Lines over the size of a chunk: the time to pin, and the longest calls."""
    if rows["chunk_mib"].nunique() < 2:
        return None
    base = alt.Chart().encode(
        x=alt.X("chunk_mib:Q", title="chunk, MiB", scale=alt.Scale(type="log", base=2)),
        y=alt.Y("seconds:Q", title="time", scale=alt.Scale(type="log"), axis=si_axis("s")),
        color=line_colour("what", list(WAITS.values()), None),
    )
    points = base.mark_point(filled=True, size=60, cursor="pointer").encode(
        href="href:N", tooltip=_tooltip("chunk_mib")
    )
    chart = panels(alt.layer(base.mark_line(strokeWidth=1.2), points, height=HEIGHT_PX), rows)
    what = "time to pin and longest calls of another process over the size of a chunk"
    return finish(chart, _described(facts, what), margin=80, compact_margin=70)
