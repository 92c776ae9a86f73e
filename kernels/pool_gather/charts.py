"""Charts of this study: rates over the size of the pool, the number of consecutive rows and of
cores, and by host. Charts of variants without the CPU also show the model's rates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from statistics import mode
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
    line_chart,
    present,
    samples_addresses,
)
from analysis.api.model import ENTRY_BYTES, PREDICTED
from analysis.api.quantities import binary
from analysis.api.study import CaseValue, Variant, parse_case

BASE: Final = "loads_first"
BOTH: Final = "both_engines"
PACKED: Final = "packed_by_cpu"
"""A variant, and the source file of all in which the CPU alone packs."""
MAX_WORKERS_FLAG: Final = r"-DMOST_WORKERS=(\d+)"
"""The flag for the maximum number of cores that pack."""
SCATTERED: Final = "scattered"
PLACES: Final = {"distinct": "scattered", SCATTERED: "scattered", "pages_4": "four together"}
"""Layouts of the main result, those without repeats first, and the names of their lines."""
WITH_HOST: Final = {
    BASE: "loads first",
    PACKED: "CPU packs",
    BOTH: "CPU and SMs",
    "ceiling_copy_engine": "link",
}
"""Variants drawn by host, and their names."""
PREDICTED_POOLS: Final = 41
"""Number of pool sizes with a predicted rate."""
MAX_POOL_GAP: Final = 3
"""Largest factor between pools that a line crosses: none across the knee."""
RUNS: Final = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64)
RATE: Final = alt.Y("rate:Q", title="payload, GB/s")


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """Charts by their names on the page. Those with the CPU show host times, which include its
    work; the others show device times, as the model predicts them."""
    points = facts.points
    points = points[points["rate"].notna() & points["case_pause_ms"].isna()]
    on_device = points[(points["variant"] == BASE) & (points["metric"] == "gpu_time")]
    by_host = points[points["metric"] == "host_time"]
    return {
        "pool_sizes": pool_sizes(facts, by_host),
        "runs": runs(facts, on_device),
        "cores": cores(facts, by_host),
        "hosts": hosts(facts),
    }


def with_predicted(
    facts: StudyFacts, points: pd.DataFrame, cases: Iterable[dict[str, CaseValue]]
) -> pd.DataFrame:
    """`points`, and the model's rates of the base step in `cases` on their machines."""
    variant = facts.study.variant(BASE)
    of_size = {case["rows"]: case for case in variant.cases}
    wanted = [replace(of_size[values["rows"]], values=values) for values in cases]
    rows = [
        {f"case_{key}": value for key, value in case.values.items()}
        | {"machine": machine, "variant": BASE, "state": PREDICTED}
        | {"case": case.id, "rate": case.payload_bytes / seconds / 1e9}
        for machine in points["machine"].unique()
        if machine in facts.chips
        for case in wanted
        if math.isfinite(seconds := facts.chips[machine].seconds(variant, case))
    ]
    return pd.concat([points, pd.DataFrame(rows)], ignore_index=True)


def pool_sizes(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The main result: scattered rows, four rows together, and the CPU beside the SMs. A dashed
    rule is at the size that the held translations cover."""
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
    pools = [round(pool) for pool in np.geomspace(*ends, PREDICTED_POOLS)]
    layouts = ("distinct", "pages_4")
    cases = [{"rows": count, "pool_mib": pool, "layout": at} for pool in pools for at in layouts]
    rows = with_predicted(facts, rows, cases)
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


def _reach(facts: StudyFacts) -> list[alt.Chart]:
    """A rule at the largest pool that the held translations of a machine cover, and its label."""
    held = [chip.parameters.held_entries for chip in facts.chips.values()]
    covered = [entries * ENTRY_BYTES / 2**30 for entries in held if math.isfinite(entries)]
    if not covered:
        return []
    at = alt.Chart(pd.DataFrame({"pool_gib": [max(covered)], "words": ["TLB reach"]}))
    at = at.encode(x=alt.X("pool_gib:Q", title="pool, GiB"))
    label = at.mark_text(style="limit", align="left", baseline="bottom", dx=5, dy=-4)
    return [
        at.mark_rule(style="limit", strokeWidth=1, strokeDash=[2, 2]),
        label.encode(y=alt.value(HEIGHT_PX), text="words:N"),
    ]


def run_rows(layout: str) -> float:
    """Number of consecutive rows per run: one if they are scattered; NaN without runs."""
    found = re.fullmatch(r"pages_(\d+)", layout)
    return int(found[1]) if found else 1 if layout == SCATTERED else math.nan


def runs(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The base step in the largest pool over the number of consecutive rows, with the model's
    rates."""
    rows = points[points["case_layout"].map(run_rows).notna()]
    for key in ("case_pool_mib", "case_rows"):
        rows = rows[rows[key] == points[key].max()]
    if rows.empty:
        return None
    first = parse_case(rows["case"].iloc[0])
    layouts = [SCATTERED, *(f"pages_{run}" for run in RUNS[1:])]
    rows = with_predicted(facts, rows, [{**first, "layout": layout} for layout in layouts])
    return line_chart(
        rows.assign(line="loads first", run=rows["case_layout"].map(run_rows)),
        alt.X("run:Q", title="consecutive rows", scale=alt.Scale(type="log", base=2)),
        RATE,
        "line",
        ["loads first"],
        "payload rate from the largest pool over the number of consecutive rows that are gathered"
        " together.",
        BASIS_COLUMNS,
    )


def cores(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """Packing of scattered rows over the number of cores that pack, a line per pool. Hosts may have
    different numbers of cores: it is that of most runs."""
    packing = {
        one.name: one
        for one in facts.study.variants
        if one.path.stem == PACKED and all(re.match(MAX_WORKERS_FLAG, flag) for flag in one.flags)
    }
    rows = points[points["variant"].isin(list(packing)) & (points["case_layout"] == SCATTERED)]
    rows = rows[rows["case_rows"] == rows["case_rows"].max()]

    def of_host(machine: str, variant: str) -> float:
        of_variant = facts.inputs.runs_of[machine, facts.study.name, variant]
        return packing_cores(packing[variant], mode(run.host.cores for run in of_variant))

    counts = [*map(of_host, rows["machine"], rows["variant"])]
    rows = rows.assign(cores=counts, pool=(rows["case_pool_mib"] * 2**20).map(binary))
    several = rows.groupby(["machine", "pool"])["cores"].transform("nunique") > 1
    rows = rows[rows["cores"].notna() & several].sort_values("case_pool_mib")
    scale = alt.Scale(type="log", base=2, nice=False)
    return line_chart(
        rows,
        alt.X("cores:Q", title="cores that pack", scale=scale),
        RATE,
        "pool",
        list(dict.fromkeys(rows["pool"])),
        "payload rate over the number of cores that pack.",
        {"cores": "cores", **BASIS_COLUMNS},
        intervals=True,
    )


def packing_cores(variant: Variant, cores: int | None) -> float:
    """Number of a host's `cores` that pack, as in workers.h: seven of eight, or fewer by the
    variant's flags. NaN if the number of cores is not known."""
    if cores is None:
        return math.nan
    most = re.search(MAX_WORKERS_FLAG, " ".join(variant.flags))
    return min(cores - (cores + 7) // 8, int(most[1]) if most else cores)


def hosts(facts: StudyFacts) -> Chart | None:
    """A point a round: payload rates of packing and its baselines, over the copy rate of one core
    around the round."""
    rows = facts.table("rounds")
    rows = rows[rows["variant"].isin(WITH_HOST) & (rows["metric"] == "host_time")]
    if rows.empty:
        return None
    pairs = zip(rows["variant"], rows["case"], strict=True)
    payloads = np.array([facts.study.payloads[pair] for pair in pairs])
    rows = rows.assign(
        copied=rows["core_copies"] / 1e9,
        rate=payloads / rows["median"] / 1e9,
        line=rows["variant"].map(WITH_HOST),
        href=samples_addresses(rows),
    )
    title = "copied by one core of the host, GB/s"
    legend = alt.Legend(title=None, values=present(WITH_HOST.values(), rows["line"]))
    dots: Any = alt.Chart().mark_point(filled=True, size=45)
    dots = dots.encode(
        x=alt.X("copied:Q", title=title, scale=alt.Scale(zero=False)),
        y=RATE,
        color=colour("line", list(WITH_HOST.values()), legend),
    ).properties(height=HEIGHT_PX)
    what = "payload rate in every round over what one core of the host copied around it."
    columns = {"variant": "variant", "run": "run", "round": "round", "rate": "GB/s"}
    return Chart(dots, rows, what, columns)
