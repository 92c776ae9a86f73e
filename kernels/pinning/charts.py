"""Charts of this study: pinning beside the waits of a neighbour, by variant, call and chunk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    MARK_PX,
    Chart,
    MeasuredRow,
    Select,
    StudyFacts,
    colour,
    faded_if_stale,
    line_chart,
    log_scale,
    part_chart,
    part_rows,
    row_chart,
    samples_address,
    si_axis,
)
from analysis.api.quantities import quantity
from analysis.api.study import parse_case

WAITS: Final = {
    "host_time": "until pinned",
    "call_worst": "neighbour's longest call meanwhile",
    "unpin_worst": "neighbour's longest call during unpinning",
}
LINES: Final = ("until pinned", "longest call", "longest call, unpinning")
"""Names of WAITS at the ends of lines."""
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
COLUMNS: Final = {
    "variant": "variant",
    "case": "case",
    "what": "what",
    "time": "time",
    "state": "state",
}


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
        for row in facts.measured.values()
        if row.metric in names
    ]
    keys = ["mib", "beside", "calls", "chunk_mib", "threads"]
    columns = ["machine", "variant", "name", "case", "what", "seconds", "time", "state", "href"]
    return pd.DataFrame(rows, columns=[*columns, *keys])


def _row(facts: StudyFacts, row: MeasuredRow, what: str) -> dict[str, object]:
    return {
        "machine": row.machine,
        "variant": row.variant,
        "name": facts.study.variant(row.variant).title,
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
    return rows.assign(size=[f"{mib / 1024:g} GiB" for mib in rows["mib"]])


def calls(facts: StudyFacts) -> pd.DataFrame:
    """Statistics of the calls of every neighbour, by call and variant."""
    rows = _rows(facts, STATISTICS)
    rows = rows[rows["variant"].isin(COMPARED) & rows["beside"].isin(list(BESIDE))]
    rows = rows[rows["mib"] == CALLS_MIB]
    rows = rows[rows["chunk_mib"].isna() & rows["threads"].isna()]
    return rows.assign(call=rows["calls"].map(CALLS), neighbour=rows["beside"].map(BESIDE))


def chunk_sizes(facts: StudyFacts) -> pd.DataFrame:
    """Time to pin and longest call by the size of a chunk; the usual size is a constant."""
    rows = _rows(facts, dict(zip(WAITS, LINES, strict=True)))
    usual = facts.study.constants["chunk_mib"]
    size = parse_case(facts.study.headline)["mib"]
    rows = rows[(rows["variant"] == "chunks") & rows["threads"].isna() & (rows["mib"] == size)]
    rows = rows[(rows["beside"] == "process") & (rows["calls"] == "malloc")]
    rows = rows.assign(chunk_mib=rows["chunk_mib"].fillna(usual))
    return rows.sort_values("chunk_mib")


def _dots(
    facts: StudyFacts, rows: pd.DataFrame, what: Sequence[str], description: str, *selects: Select
) -> Chart | None:
    """A row a variant, and a dot a time in the colour of what it is of."""
    if rows.empty:
        return None
    marks: Any = alt.Chart().mark_point(filled=True, size=75, yOffset=MARK_PX)
    marks = marks.encode(
        x=alt.X("seconds:Q", title="time", scale=log_scale(), axis=si_axis("s")),
        color=colour("what", what, alt.Legend(title=None, columns=1)),
        opacity=faded_if_stale(),
    )
    drawing = row_chart("variant", facts.study.variant_names, marks, name="name")
    return Chart(drawing, rows, f"{facts.study.title}: {description}", COLUMNS, selects)


def _waits(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """A row a variant: the time to pin and the longest calls of another process."""
    rows = rows.sort_values("mib", ascending=False)
    what = "time to pin and longest CUDA call of another process, by variant."
    return _dots(facts, rows, list(WAITS.values()), what, Select("size", "size"))


def _calls(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """A row a variant: median, 99th percentile and longest of one kind of call."""
    what = "times of a neighbour's calls while memory is pinned, by variant."
    selects = [
        Select("call", "call", CALLS["malloc"]),
        Select("neighbour", "neighbour", BESIDE["process"]),
    ]
    return _dots(facts, rows, list(STATISTICS.values()), what, *selects)


def _parts(facts: StudyFacts) -> Chart | None:
    """Stacked bars: touching and registering, in the headline case."""
    rows = part_rows(facts)
    rows = rows[rows["case"] == facts.study.headline]
    rows = rows.assign(time=[quantity(seconds, "s") for seconds in rows["seconds"]])
    x = alt.X("seconds:Q", title="host time", stack="zero", axis=si_axis("s"))
    what = f"{facts.study.title}: time of touching and of registering, stacked."
    columns = {"variant": "variant", "time": "time", "state": "state"}
    return part_chart(facts, rows, x, what, columns)


def _chunk_sizes(facts: StudyFacts, rows: pd.DataFrame) -> Chart | None:
    """Lines over the size of a chunk: the time to pin, and the longest calls."""
    if rows["chunk_mib"].nunique() < 2:
        return None
    x = alt.X("chunk_mib:Q", title="chunk, MiB", scale=alt.Scale(type="log", base=2))
    y = alt.Y("seconds:Q", title="time", scale=log_scale(), axis=si_axis("s"))
    drawing, rows = line_chart(rows, x, y, "what", LINES)
    what = "time to pin and longest calls of another process over the size of a chunk."
    return Chart(drawing, rows, f"{facts.study.title}: {what}", COLUMNS)
