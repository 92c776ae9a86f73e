"""Charts of this study: sources of rows by size and number, rates over row sizes, pools and links,
and the residuals of the NVLink model."""

from __future__ import annotations

from typing import Any, Final

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import (
    CELL_PX,
    Chart,
    StudyFacts,
    finish,
    line_colour,
    line_panels,
    panels,
    present,
    select,
    stale_shape,
    tooltip,
)
from analysis.api.model import PREDICTED
from analysis.api.quantities import quantity, ratio

from .nvlink import WITHIN, NvLink, fit, held_back, hits, work_of
from .tier import tier_chart

BASE: Final = "from_host"
SOURCES: Final = ("own", "pushed", "pulled", BASE, "two_links", "four_links")
"""Variants compared by size and number of rows."""
OVER_SIZES: Final = ("copy_engine", *SOURCES[1:])
"""Lines over row sizes and pools, without local memory, beside which the other lines would
merge."""
OVER_POOLS: Final = (
    *OVER_SIZES,
    *("two_links_sorted", "four_links_sorted", "two_links_in_order", "four_links_in_order"),
)
WAYS: Final = {
    "gather, to one GPU": (BASE, "two_links", "three_links", "four_links"),
    "sorted gather, to one GPU": ("", "two_links_in_order", "", "four_links_in_order"),
    "packed by the CPU, to one GPU": ("", "two_links_packed", "", "four_links_packed"),
    "both, to one GPU": ("", "two_links_both", "", "four_links_both"),
    "gather, to separate GPUs": (BASE, "two_links_apart", "three_links_apart", "four_links_apart"),
    "copy engines, to one GPU": (
        *("host_copy_engine", "two_copy_engines", "three_copy_engines", "four_copy_engines"),
    ),
    "copy engines, to separate GPUs": (
        *("host_copy_engine", "two_copy_engines_apart"),
        *("three_copy_engines_apart", "four_copy_engines_apart"),
    ),
    "gather, to the host": ("to_host", "two_to_host", "three_to_host", "four_to_host"),
    "copy engines, to the host": (
        *("copy_engine_to_host", "two_copy_engines_to_host"),
        *("three_copy_engines_to_host", "four_copy_engines_to_host"),
    ),
}
"""Variants of one to four GPUs."""
MODELLED: Final = "pulled"
MODEL: Final = "pulled, by the model"
SMALL_POOL: Final = 188
ROW_PX: Final = 34
TICKS: Final = (-0.5, -0.2, -0.1, -0.05, 0, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
"""Ticks of residuals, whose scale is logarithmic outside the accepted band."""
ROOM: Final = 0.5
"""Minimum upper end of the residual axis, so that the parameters stand above the points."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`gains`, `sizes`, `pools`, `links`, `nvlink` and `tier`, as far as measured, by device
    time."""
    points = facts.points
    points = points[points["rate"].notna() & (points["metric"] == "gpu_time")]
    small = points[points["case_pool_mib"] == SMALL_POOL]
    fitted = fits(small)
    return {
        "gains": _gains(facts, small),
        "sizes": _sizes(facts, small, fitted),
        "pools": _pools(facts, points),
        "links": _links(facts, points),
        "nvlink": _nvlink(facts, points, fitted),
        "tier": tier_chart(facts, points),
    }


def gains(points: pd.DataFrame) -> pd.DataFrame:
    """Speed of each source relative to the host, where rows of one size and number were measured
    from both."""
    rows = points[points["variant"].isin(SOURCES)]
    base = rows[rows["variant"] == BASE].set_index(["machine", "case"])["seconds"]
    rows = rows[rows["variant"] != BASE].join(base.rename("base"), on=["machine", "case"])
    rows = rows[rows["base"].notna()]
    times = rows["base"] / rows["seconds"]
    return rows.assign(
        times=times,
        text=times.map(ratio),
        microseconds=rows["seconds"].map(lambda seconds: quantity(seconds, "s")),
        row=rows["case_row_bytes"].map(lambda size: f"{size:.0f} B"),
    ).sort_values("case_row_bytes")


def _gains(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """A panel per machine: size over number of rows, each cell with its gain over the host."""
    rows = gains(points)
    sizes = rows.groupby("case_rows")["case_row_bytes"].transform("nunique")
    rows = rows[sizes > 1]
    if rows.empty:
        return None
    base: Any = (
        alt.Chart()
        .encode(
            x=alt.X("case_rows:O", title="rows", axis=alt.Axis(labelAngle=0, orient="top")),
            y=alt.Y("row:N", sort=list(dict.fromkeys(rows["row"]))[::-1], title="size of a row"),
            tooltip=[alt.Tooltip("microseconds:N", title="time"), *tooltip(facts)],
            href="href:N",
        )
        .transform_filter("datum.variant === source_shown")
    )
    max_gain = float(np.maximum(rows["times"], 1 / rows["times"]).max())
    scale = alt.Scale(
        type="log", scheme="blueorange", domain=[1 / max_gain, max_gain], reverse=True
    )
    colour = alt.Color("times:Q", title="times as fast", scale=scale)
    marks = alt.layer(
        base.mark_rect(cursor="pointer", opacity=0.6).encode(color=colour),
        base.mark_text(fontSize=11).encode(text="text:N"),
    ).properties(height=ROW_PX * rows["row"].nunique())
    known = present(SOURCES, rows["variant"])
    default = MODELLED if MODELLED in known else known[0]
    description = (
        f"{facts.study.title}: how many times as fast rows come from elsewhere as from the host"
        f" over one link, by their size and number, for {len(facts.machines)} machines."
    )
    chart = panels(marks, rows, select("source_shown", "source", known, default))
    least = CELL_PX * rows["case_rows"].nunique()
    return finish(chart, description, margin=90, compact_margin=80, least=least)


def fits(points: pd.DataFrame) -> dict[str, NvLink]:
    """The NVLink model of each machine, fitted to rows pulled from small pools."""
    found = {}
    for machine, rows in points[points["variant"] == MODELLED].groupby("machine"):
        fitted = fit(works(rows), rows["seconds"].to_numpy(float))
        if fitted is not None:
            found[str(machine)] = fitted
    return found


def works(rows: pd.DataFrame) -> np.ndarray:
    """Data and packets of these gathers over NVLink, [rows, 2]."""
    keys = zip(rows["case_row_bytes"], rows["case_rows"], strict=True)
    return np.array([work_of(int(size), int(count)) for size, count in keys])


def _sizes(facts: StudyFacts, points: pd.DataFrame, fitted: dict[str, NvLink]) -> Chart | None:
    """A panel per machine, a line per source: the rate over the size of a row, with the model's."""
    rows = points[points["variant"].isin(OVER_SIZES)]
    rows = rows[rows["case_row_bytes"] * rows["case_rows"] >= 2**22]
    widths = rows.groupby(["machine", "variant", "case_row_bytes"])["case_rows"].transform("max")
    rows = rows[rows["case_rows"] == widths]
    if rows["case_row_bytes"].nunique() < 2:
        return None
    row_count = int(rows["case_rows"].max())
    sizes = range(16, int(rows["case_row_bytes"].max()) + 1, 16)
    predicted = [
        {"machine": machine, "variant": MODEL, "state": PREDICTED, "case_row_bytes": size}
        | {"rate": size * row_count / float(seconds) / 1e9}
        for machine, model in fitted.items()
        for size in sizes
        for seconds in model.seconds(np.array([work_of(size, row_count)]))
    ]
    rows = pd.concat([rows, pd.DataFrame(predicted, columns=rows.columns)], ignore_index=True)
    x = alt.X(
        "case_row_bytes:Q",
        title="bytes of a row",
        scale=alt.Scale(type="log", base=2, nice=False),
    )
    names = present((*OVER_SIZES, MODEL), rows["variant"])
    return _lines(facts, rows, x, line_colour("variant", names, None), "the size of a row")


def _pools(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The same over the size of the pool, for rows of one size."""
    rows = points[points["variant"].isin(OVER_POOLS) & (points["case_row_bytes"] == 656)]
    pools = rows.groupby(["machine", "variant", "case_rows"])["case_pool_mib"].transform("nunique")
    rows = rows[pools > 1]
    if rows.empty:
        return None
    counts = sorted(int(count) for count in rows["case_rows"].unique())
    rows = rows.assign(pool_gib=rows["case_pool_mib"] / 1024)
    x = alt.X("pool_gib:Q", title="pool, GiB", scale=alt.Scale(type="log", base=2))
    names = present(OVER_POOLS, rows["variant"])
    colour = line_colour("variant", names, None)
    chosen = select("rows_shown", "rows", counts, counts[-1])
    return _lines(facts, rows, x, colour, "the size of the pool", chosen)


def _links(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The same over the number of GPUs, a line per way."""
    parts = []
    for way, names in WAYS.items():
        gpus = {name: number for number, name in enumerate(names, 1) if name}
        rows = points[points["variant"].isin(list(gpus))]
        parts.append(rows.assign(way=way, gpus=rows["variant"].map(gpus)))
    rows = pd.concat(parts, ignore_index=True)
    rows = rows[(rows["case_row_bytes"] == 656) & (rows["case_rows"] == 262144)]
    rows = rows[rows.groupby(["machine", "way", "case"])["gpus"].transform("nunique") > 1]
    if rows.empty:
        return None
    pools = sorted(int(pool) for pool in rows["case_pool_mib"].unique())
    counts = sorted(int(count) for count in rows["gpus"].unique())
    x = alt.X("gpus:Q", title="GPUs", axis=alt.Axis(values=counts, format="d"))
    ways = present(WAYS, rows["way"])
    chosen = select("pool_shown", "pool, MiB", pools, pools[0])
    return _lines(facts, rows, x, line_colour("way", ways, None), "the number of GPUs", chosen)


FILTERS: Final = {
    "rows_shown": "datum.case_rows === rows_shown",
    "pool_shown": "datum.case_pool_mib === pool_shown",
}
"""Filter expressions by the name of their select."""


def _lines(
    facts: StudyFacts,
    rows: pd.DataFrame,
    x: alt.X,
    colour: alt.Color,
    over: str,
    *selects: alt.Parameter,
) -> Chart:
    base: Any = alt.Chart().encode(x=x, y=alt.Y("rate:Q", title="payload, GB/s"), color=colour)
    for parameter in selects:
        base = base.transform_filter(FILTERS[str(parameter.name)])
    description = (
        f"{facts.study.title}: payload rate over {over}, for {len(facts.machines)} machines."
    )
    return line_panels(facts, rows, base, description, *selects)


def residuals(points: pd.DataFrame, fitted: dict[str, NvLink]) -> pd.DataFrame:
    """Time of each gather from the peer relative to the prediction, less 1. Gathers from larger
    pools are held back, too."""
    parts = []
    for machine, model in fitted.items():
        rows = points[(points["variant"] == MODELLED) & (points["machine"] == machine)]
        is_small = (rows["case_pool_mib"] == SMALL_POOL).to_numpy()
        held = np.ones(len(rows), dtype=bool)
        held[is_small] = held_back(int(is_small.sum()))
        off = rows["seconds"].to_numpy(float) / model.seconds(works(rows)) - 1
        said = f"{model}\n{hits(off[held])}"
        use = np.where(held, "held back", "fitted")
        parts.append(rows.assign(residual=off, use=use, said=said))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _nvlink(facts: StudyFacts, points: pd.DataFrame, fitted: dict[str, NvLink]) -> Chart | None:
    """A panel per machine: residuals over the rate, with the accepted band and the parameters."""
    rows = residuals(points, fitted)
    if rows.empty:
        return None
    low, high = float(rows["residual"].min()), float(rows["residual"].max())
    shown = [min(low, -2 * WITHIN), max(high, ROOM)]
    scale = alt.Scale(type="symlog", constant=WITHIN, domain=shown, nice=False)
    ticks = [tick for tick in TICKS if shown[0] <= tick <= shown[1]]
    axis = alt.Axis(format="+.0%", values=ticks)
    base: Any = alt.Chart()
    accepted = alt.Chart().transform_aggregate(groupby=["machine", "said"])
    band = accepted.mark_rect(opacity=0.15, color="gray").encode(
        y=alt.datum(-WITHIN), y2=alt.datum(WITHIN)
    )
    marks = base.mark_point(filled=True, size=50, cursor="pointer").encode(
        x=alt.X("rate:Q", title="payload, GB/s"),
        y=alt.Y("residual:Q", title="longer than predicted", axis=axis, scale=scale),
        color=line_colour("use", ["fitted", "held back"], None),
        shape=stale_shape(),
        href="href:N",
        tooltip=[alt.Tooltip("residual:Q", title="residual", format="+.1%"), *tooltip(facts)],
    )
    words = accepted.mark_text(
        align="right", baseline="top", fontSize=11, lineBreak="\n", x="width", dx=-4, y=4
    ).encode(text="said:N")
    description = (
        f"{facts.study.title}: how much longer than the model of NVLink predicts gathers from the"
        f" peer's memory take, for {len(facts.machines)} machines."
    )
    chart = panels(alt.layer(band, marks, words).properties(height=260), rows)
    return finish(chart, description, margin=70, compact_margin=60)
