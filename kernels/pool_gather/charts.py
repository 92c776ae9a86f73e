"""This study's own charts: rates over the size of the pool, by layout and by variant, and over how
many needed rows lie together."""

from __future__ import annotations

import re
from typing import Final

import altair as alt
import pandas as pd

from analysis.charts.lines import line_colour, line_panels
from analysis.charts.theme import Chart, select
from analysis.facts.study_facts import StudyFacts

BASE: Final = "loads_first"
SCATTERED: Final = "scattered"
LAYOUTS: Final = (SCATTERED, "pages_64", "contiguous")


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`layouts`, `ways` and `runs`, as far as measured; all by host time, in which the CPU's work
    counts."""
    points = facts.points
    points = points[(points["metric"] == "host_time") & points["rate"].notna()]
    points = points.assign(pool_gib=points["case_pool_mib"] / 1024)
    return {
        "layouts": _layouts(facts, points),
        "ways": _ways(facts, points),
        "runs": _runs(facts, points),
    }


def run_rows(layout: str) -> int | None:
    """How many consecutive rows are drawn together; None where rows lie near each other otherwise.

    The rows of `scattered` are runs of one.
    """
    if layout == SCATTERED:
        return 1
    found = re.fullmatch(r"pages_(\d+)", layout)
    return int(found[1]) if found else None


def _layouts(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The base step over the size of the pool, a line a layout."""
    rows = points[(points["variant"] == BASE) & points["case_layout"].isin(LAYOUTS)]
    colour = line_colour("case_layout", LAYOUTS, "layout")
    return _over_pool(facts, rows, colour, f"{BASE}, a line for each layout of the rows")


def _ways(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """All variants with scattered rows over the size of the pool, a line a variant."""
    rows = points[points["case_layout"] == SCATTERED]
    rows = rows[rows.groupby("variant")["case_pool_mib"].transform("nunique") > 1]
    names = [name for name in facts.study.variant_names if name in set(rows["variant"])]
    return _over_pool(facts, rows, line_colour("variant", names, None), "scattered rows")


def _over_pool(facts: StudyFacts, rows: pd.DataFrame, colour: alt.Color, what: str) -> Chart | None:
    if rows.empty:
        return None
    counts = sorted(int(count) for count in rows["case_rows"].unique())
    base = (
        alt.Chart()
        .encode(
            x=alt.X("pool_gib:Q", title="pool, GiB", scale=alt.Scale(type="log", base=2)),
            y=alt.Y("rate:Q", title="payload, GB/s"),
            color=colour,
        )
        .transform_filter("datum.case_rows === rows_shown")
    )
    description = (
        f"{facts.study.title}: payload rate over the size of the pool: {what}, for"
        f" {len(facts.machines)} machines."
    )
    chosen = select("rows_shown", "rows", counts, counts[-1])
    return line_panels(facts, rows, base, description, chosen)


def _runs(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The base step in the largest pool over the rows that lie together, each with its rate."""
    rows = points.assign(run=points["case_layout"].map(run_rows))
    is_largest = (rows["case_pool_mib"] == rows["case_pool_mib"].max()) & (
        rows["case_rows"] == rows["case_rows"].max()
    )
    rows = rows[(rows["variant"] == BASE) & is_largest & rows["run"].notna()]
    if rows.empty:
        return None
    x = alt.X("run:Q", title="consecutive rows", scale=alt.Scale(type="log", base=2))
    base = alt.Chart().encode(x=x, y=alt.Y("rate:Q", title="payload, GB/s"))
    description = (
        f"{facts.study.title}: payload rate from the largest pool over the number of consecutive"
        f" rows that are gathered together, for {len(facts.machines)} machines."
    )
    return line_panels(facts, rows, base, description)
