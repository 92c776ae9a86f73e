"""Charts of this study: rates over the size of the pool, and by host."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import (
    BASIS_COLUMNS,
    HEIGHT_PX,
    Chart,
    StudyFacts,
    colour,
    fresh_figures,
    line_chart,
    samples_addresses,
)
from analysis.api.model import ENTRY_BYTES, PREDICTED
from analysis.api.study import parse_case

BASE: Final = "loads_first"
BOTH: Final = "both_engines"
SCATTERED: Final = "scattered"
PLACES: Final = {"distinct": "scattered", SCATTERED: "scattered", "pages_4": "four together"}
"""Layouts of the main result, those without repeats first, and the names of their lines."""
WITH_HOST: Final = {
    BASE: "loads first",
    "packed_by_cpu": "CPU packs",
    BOTH: "CPU and SMs",
    "ceiling_copy_engine": "link",
}
"""Variants drawn by host, and their names."""
TRANSLATION, READS = "translation", "independent_lines"
"""The study that measures the TLB reach, and its variant of single reads."""
HELD_SHARE: Final = 0.95
"""Reads of at least this share of the highest rate find their translation."""
PREDICTED_POOLS: Final = 41
"""Number of pool sizes with a predicted rate."""
MAX_POOL_GAP: Final = 3
"""Largest factor between pools that a line crosses: none across the knee."""
RATE: Final = alt.Y("rate:Q", title="payload, GB/s")


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """Charts of host times, which include the work of the CPU."""
    points = facts.points[facts.points["metric"] == "host_time"]
    points = points[points["rate"].notna() & points["case_pause_ms"].isna()]
    return {"pool_sizes": pool_sizes(facts, points), "hosts": hosts(facts)}


def pool_sizes(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The main result: scattered rows, four rows together, and the CPU beside the SMs. A dashed
    rule is at the TLB reach."""
    count = parse_case(facts.study.headline)["rows"]
    rows = points[points["variant"].isin([BASE, BOTH]) & (points["case_rows"] == count)]
    rows = rows[rows["case_layout"].isin(PLACES) & rows["case_beside"].isna()]
    rows = rows[(rows["variant"] == BASE) | (rows["case_layout"] != "pages_4")]
    if rows.empty:
        return None
    # Random rows of a small pool repeat: then the layout without repeats is drawn.
    rows = rows.assign(place=rows["case_layout"].map(PLACES)).sort_values("case_layout")
    rows = rows.drop_duplicates(["machine", "variant", "place", "case_pool_mib"])
    ends = points["case_pool_mib"].min(), points["case_pool_mib"].max()
    rows = pd.concat([rows, predicted(facts, [*rows["machine"].unique()], ends)], ignore_index=True)
    lines = rows["case_layout"].map(PLACES).mask(rows["variant"] == BOTH, "CPU and SMs")
    return line_chart(
        rows.assign(line=lines, pool_gib=rows["case_pool_mib"] / 1024),
        alt.X("pool_gib:Q", title="pool, GiB", scale=alt.Scale(type="log", base=2)),
        RATE,
        "line",
        ["CPU and SMs", "four together", "scattered"],
        "payload rate over the size of the pool: scattered rows, four rows together, and the CPU"
        " beside the SMs.",
        BASIS_COLUMNS,
        max_gap=MAX_POOL_GAP,
        beneath=_reach(facts),
    )


def predicted(
    facts: StudyFacts, machines: Sequence[str], ends: tuple[float, float]
) -> pd.DataFrame:
    """The model's rates of the base step, device times, on these machines, from the smallest to the
    largest pool in MiB."""
    variant, headline = facts.study.variant(BASE), parse_case(facts.study.headline)
    like = next(one for one in variant.cases if one["rows"] == headline["rows"])
    values = [
        {"rows": headline["rows"], "pool_mib": round(pool), "layout": layout}
        for pool in np.geomspace(*ends, PREDICTED_POOLS)
        for layout in ("distinct", "pages_4")
    ]
    cases = [replace(like, values=each) for each in values]
    return pd.DataFrame(
        {f"case_{key}": value for key, value in case.values.items()}
        | {"machine": machine, "variant": BASE, "state": PREDICTED}
        | {"case": case.id, "rate": case.payload_bytes / seconds / 1e9}
        for machine in machines
        if machine in facts.chips
        for case in cases
        if math.isfinite(seconds := facts.chips[machine].seconds(variant, case))
    )


def _reach(facts: StudyFacts) -> list[alt.Chart]:
    """A rule at the largest pool whose single reads still find their translation, and its label:
    the largest one, of any machine, from which reads arrive as fast as from the smallest."""
    if TRANSLATION not in facts.inputs.studies:
        return []
    reads = fresh_figures(StudyFacts(facts.inputs, facts.inputs.studies[TRANSLATION]), "gpu_time")
    reads = reads[(reads["variant"] == READS) & (reads["order"] == "random")]
    reads = reads[reads["stride_kib"].eq(ENTRY_BYTES / 1024) & reads["memory"].isna()]
    rate = reads["reads"] / reads["median"]
    is_held = rate >= HELD_SHARE * rate.groupby(reads["machine"]).transform("max")
    if not is_held.any():
        return []
    pool_gib = float(reads.loc[is_held, "count"].max()) * ENTRY_BYTES / 2**30
    at = alt.Chart(pd.DataFrame({"pool_gib": [pool_gib], "words": ["TLB reach"]}))
    at = at.encode(x=alt.X("pool_gib:Q", title="pool, GiB"))
    label = at.mark_text(style="limit", align="left", baseline="bottom", dx=5, dy=-4)
    label = label.encode(y=alt.value(HEIGHT_PX), text="words:N")
    return [at.mark_rule(style="limit", strokeWidth=1, strokeDash=[2, 2]), label]


def hosts(facts: StudyFacts) -> Chart | None:
    """A point a round: payload rates of packing and its baselines, over the copy rate of one core
    around the round."""
    rows = facts.table("rounds")
    rows = rows[rows["variant"].isin(WITH_HOST) & (rows["metric"] == "host_time")]
    if rows.empty:
        return None
    pairs = zip(rows["variant"], rows["case"], strict=True)
    rows = rows.assign(
        copied=rows["core_copies"] / 1e9,
        rate=[facts.study.payloads[pair] for pair in pairs] / rows["median"] / 1e9,
        line=rows["variant"].map(WITH_HOST),
        href=samples_addresses(rows),
    )
    title = "copied by one core of the host, GB/s"
    dots: Any = alt.Chart().mark_point(filled=True, size=45)
    dots = dots.encode(
        x=alt.X("copied:Q", title=title, scale=alt.Scale(zero=False)),
        y=RATE,
        color=colour("line", list(WITH_HOST.values()), alt.Legend(title=None)),
    ).properties(height=HEIGHT_PX)
    what = "payload rate in every round over what one core of the host copied around it."
    columns = {"variant": "variant", "run": "run", "round": "round", "rate": "GB/s"}
    return Chart(dots, rows, what, columns)
