"""Charts of this study: sources of rows by size and number, rates over row sizes, pools and links,
and the residuals of the NVLink model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import (
    BASIS_COLUMNS,
    HEIGHT_PX,
    Chart,
    Select,
    StudyFacts,
    colour,
    faded_if_stale,
    line_chart,
    map_chart,
    two_digits,
    worse_to_better,
)
from analysis.api.model import PREDICTED
from analysis.api.quantities import quantity, ratio

from .nvlink import WITHIN, NvLink, fit, held_back, hits, work_of
from .tier import tier_chart

BASE: Final = "from_host"
SOURCES: Final = {
    "own": "own memory",
    "pushed": "pushed by the peer",
    "pulled": "pulled from the peer",
    "two_links": "two links",
    "four_links": "four links",
    BASE: "the host",
}
"""Variants compared by size and number of rows."""
OVER_SIZES: Final = ("pushed", "pulled", BASE, "four_links")
"""Lines over row sizes, without local memory, beside which the other lines would merge."""
OVER_POOLS: Final = ("pulled", BASE, "two_links", "four_links", "four_links_sorted")
WAYS: Final = {
    "gather": (BASE, "two_links", "three_links", "four_links"),
    "sorted gather": ("", "two_links_in_order", "", "four_links_in_order"),
    "packed by the CPU": ("", "two_links_packed", "", "four_links_packed"),
    "separate GPUs": (BASE, "two_links_apart", "three_links_apart", "four_links_apart"),
    "copy engines": (
        *("host_copy_engine", "two_copy_engines_apart"),
        *("three_copy_engines_apart", "four_copy_engines_apart"),
    ),
}
"""Variants of one to four GPUs."""
MODELLED: Final = "pulled"
MODEL: Final = "the model"
SMALL_POOL: Final = 188
NAMES: Final = {**SOURCES, "four_links_sorted": "four, sorted", MODEL: MODEL}


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
        figure=times.map(two_digits),
        time=rows["seconds"].map(lambda seconds: quantity(seconds, "s")),
        row=rows["case_row_bytes"].map(lambda size: f"{size:.0f} B"),
        source=rows["variant"].map(SOURCES),
    ).sort_values("case_row_bytes")


def _gains(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """Size over number of rows, each cell with its gain over the host."""
    rows = gains(points)
    sizes = rows.groupby("case_rows")["case_row_bytes"].transform("nunique")
    rows = rows[sizes > 1]
    if rows.empty:
        return None
    sizes_down = list(dict.fromkeys(rows["row"]))[::-1]
    description = (
        f"{facts.study.title}: how many times as fast rows come from elsewhere as from the host"
        " over one link, by their size and number."
    )
    return map_chart(
        alt.X("case_rows:O", title="rows", axis=alt.Axis(labelAngle=0, orient="top")),
        alt.Y("row:N", sort=sizes_down, title="size of a row"),
        alt.Color("times:Q", scale=worse_to_better(0.1, 1, 10), legend=None),
        rows,
        description,
        {"text": "times as fast as the host", "time": "time", **BASIS_COLUMNS},
        [Select("source", "source", SOURCES[MODELLED])],
        cell_px=30,
    )


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
    """The rate over the size of a row, a line for each source, with the model's."""
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
    scale = alt.Scale(type="log", base=2, nice=False)
    x = alt.X("case_row_bytes:Q", title="bytes of a row", scale=scale)
    return _lines(facts, rows, x, (*OVER_SIZES, MODEL), "the size of a row")


def _pools(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The same over the size of the pool, for rows of one size."""
    rows = points[points["variant"].isin(OVER_POOLS) & (points["case_row_bytes"] == 656)]
    pools = rows.groupby(["machine", "variant", "case_rows"])["case_pool_mib"].transform("nunique")
    rows = rows[pools > 1].sort_values("case_rows", ascending=False)
    if rows.empty:
        return None
    rows = rows.assign(pool_gib=rows["case_pool_mib"] / 1024)
    x = alt.X("pool_gib:Q", title="pool, GiB", scale=alt.Scale(type="log", base=2))
    return _lines(facts, rows, x, OVER_POOLS, "the size of the pool", Select("case_rows", "rows"))


def _links(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The same over the number of GPUs, a line for each way."""
    parts = []
    for way, names in WAYS.items():
        gpus = {name: number for number, name in enumerate(names, 1) if name}
        rows = points[points["variant"].isin(list(gpus))]
        parts.append(rows.assign(variant=way, gpus=rows["variant"].map(gpus)))
    rows = pd.concat(parts, ignore_index=True)
    rows = rows[(rows["case_row_bytes"] == 656) & (rows["case_rows"] == 262144)]
    rows = rows[rows.groupby(["machine", "variant", "case"])["gpus"].transform("nunique") > 1]
    if rows.empty:
        return None
    rows = rows.sort_values("case_pool_mib")
    counts = sorted(int(count) for count in rows["gpus"].unique())
    x = alt.X("gpus:Q", title="GPUs", axis=alt.Axis(values=counts, format="d"))
    select = Select("case_pool_mib", "pool, MiB")
    return _lines(facts, rows, x, tuple(WAYS), "the number of GPUs", select)


def _lines(
    facts: StudyFacts,
    rows: pd.DataFrame,
    x: alt.X,
    order: Sequence[str],
    over: str,
    *selects: Select,
) -> Chart:
    rows = rows.assign(line=[NAMES.get(name, name) for name in rows["variant"]])
    names = [NAMES.get(name, name) for name in order]
    by = ["machine", *(select.column for select in selects)]
    y = alt.Y("rate:Q", title="payload, GB/s")
    drawing, drawn = line_chart(rows, x, y, "line", names, by=by)
    description = f"{facts.study.title}: payload rate over {over}."
    return Chart(drawing, drawn, description, BASIS_COLUMNS, selects)


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
        parts.append(
            rows.assign(
                residual=off, use=use, said=said, off=[f"{100 * one:+.1f} %" for one in off]
            )
        )
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _nvlink(facts: StudyFacts, points: pd.DataFrame, fitted: dict[str, NvLink]) -> Chart | None:
    """Residuals over the rate, with the accepted band and the parameters."""
    rows = residuals(points, fitted)
    if rows.empty:
        return None
    scale = alt.Scale(type="symlog", constant=WITHIN, nice=False)
    base: Any = alt.Chart()
    ends = pd.DataFrame({"low": [-WITHIN], "high": [WITHIN]})
    band = alt.Chart(ends).mark_rect(style="band", opacity=0.13).encode(y="low:Q", y2="high:Q")
    marks = base.mark_point(filled=True, size=50).encode(
        x=alt.X("rate:Q", title="payload, GB/s"),
        y=alt.Y(
            "residual:Q", title="longer than predicted", axis=alt.Axis(format="+.0%"), scale=scale
        ),
        color=colour("use", ["fitted", "held back"], alt.Legend(title=None)),
        opacity=faded_if_stale(),
    )
    words = base.transform_aggregate(groupby=["said"]).mark_text(
        align="right", baseline="top", lineBreak="\n", x="width", dx=-4, y=4
    )
    drawing = alt.layer(band, marks, words.encode(text="said:N")).properties(height=HEIGHT_PX)
    description = (
        f"{facts.study.title}: how much longer than the model of NVLink predicts gathers from the"
        " peer's memory take."
    )
    return Chart(drawing, rows, description, {"off": "residual", **BASIS_COLUMNS})
