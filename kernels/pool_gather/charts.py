"""Charts of this study: rates over the size of the pool, by layout and by variant, and over the
number of consecutive rows; the cost of a gather to a kernel beside it. Charts of variants without
the CPU also show the model's rates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import mode
from typing import Final

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import (
    BASIS_COLUMNS,
    HEIGHT_PX,
    MARK_PX,
    Chart,
    Select,
    StudyFacts,
    chips,
    colour,
    faded_if_stale,
    line_chart,
    log_scale,
    row_chart,
    samples_address,
    samples_addresses,
)
from analysis.api.model import ENTRY_BYTES, PREDICTED
from analysis.api.quantities import ratio
from analysis.api.study import CaseValue, Variant, parse_case

Keys = dict[str, CaseValue]
"""Keys of a case with their values."""

BASE: Final = "loads_first"
CEILING: Final = "ceiling_copy_engine"
BOTH: Final = "both_engines"
PACKED: Final = "packed_by_cpu"
"""Source file of all variants in which the CPU alone packs."""
MAX_WORKERS_FLAG: Final = r"-DMOST_WORKERS=(\d+)"
"""The flag for the maximum number of cores that pack."""
SCATTERED: Final = "scattered"
LAYOUTS: Final = {SCATTERED: "scattered", "pages_64": "64 together", "contiguous": "contiguous"}
PLACES: Final = {SCATTERED: "scattered", "distinct": "scattered", "pages_4": "four together"}
"""Layouts of the picture of the main result."""
ANYWHERE: Final = ("distinct", SCATTERED)
"""Layouts with rows anywhere; those without repeats first."""
MAX_REPEATED: Final = 0.1
"""Largest share of rows that were drawn before in the same launch, as the L2 may serve them."""
NEIGHBOURS: Final = {
    "gemm": "multiplying matrices",
    "memory": "copying in device memory",
    "prioritised_gemm": "multiplying, with priority",
    "prioritised_memory": "copying, with priority",
}
"""Kernels beside a gather, in words."""
WAYS: Final = {
    BASE: "loads first",
    "sorted": "sorted",
    PACKED: "CPU packs",
    BOTH: "CPU and SMs",
    CEILING: "link",
}
"""Variants with a line, and their names."""
POOL: Final = "pool, GiB"
PREDICTED_POOLS: Final = 41
"""Number of pool sizes with a predicted rate."""
MAX_POOL_GAP: Final = 3
"""Largest factor between pools that a line crosses: none across the knee."""
RUNS: Final = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64)


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`pool_sizes`, `layouts`, `ways`, `runs`, `cores`, `hosts` and `neighbours`, as far as
    measured. Charts with the CPU show host times, which include its work; the others show device
    times, as the model predicts them."""
    points = facts.points
    points = points[points["rate"].notna() & points["case_pause_ms"].isna()]
    points = points.assign(
        pool_gib=points["case_pool_mib"] / 1024,
        run=points["case_layout"].map(run_rows),
        repeated=[*map(repeated_share, points["case"], points["payload_bytes"])],
    )
    on_device = points[(points["variant"] == BASE) & (points["metric"] == "gpu_time")]
    by_host = points[points["metric"] == "host_time"]
    return {
        "pool_sizes": _pool_sizes(facts, by_host),
        "layouts": _layouts(facts, on_device),
        "ways": _ways(facts, by_host),
        "runs": _runs(facts, on_device),
        "cores": _cores(facts, by_host),
        "hosts": _hosts(facts),
        "neighbours": _neighbours(facts),
    }


def run_rows(layout: str) -> int | None:
    """Number of consecutive rows per run; None for layouts without runs.

    The rows of `scattered` are runs of one.
    """
    if layout == SCATTERED:
        return 1
    found = re.fullmatch(r"pages_(\d+)", layout)
    return int(found[1]) if found else None


def repeated_share(case: str, payload_bytes: float) -> float:
    """Expected share of a launch's rows that it draws more than once: 0 without random draws."""
    keys = parse_case(case)
    if keys["layout"] != SCATTERED:
        return 0.0
    drawn = payload_bytes / (int(keys["pool_mib"]) * 2**20)
    return 1 - (1 - math.exp(-drawn)) / drawn


def _pool_sizes(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The main result: scattered rows, four rows together, and the CPU beside the SMs."""
    rows = points[points["case_layout"].isin(PLACES) & points["case_beside"].isna()]
    rows = rows[rows["case_rows"] == parse_case(facts.study.headline)["rows"]]
    by_sms = rows[rows["variant"] == BASE]
    by_sms = by_sms.assign(line=by_sms["case_layout"].map(PLACES))
    by_both = rows[(rows["variant"] == BOTH) & (rows["case_layout"] != "pages_4")]
    rows = pd.concat([by_sms, by_both.assign(line="CPU and SMs")])
    # Random rows of a small pool repeat: then the layout without repeats is drawn.
    rows = rows.sort_values("case_layout").drop_duplicates(["machine", "line", "pool_gib"])
    pools = _pools(points)
    keys = (
        {"pool_mib": pool, "layout": layout} for pool in pools for layout in ("distinct", "pages_4")
    )
    count = parse_case(facts.study.headline)["rows"]
    modelled = _predicted(facts, by_sms, [{"rows": count, **one} for one in keys])
    modelled = modelled.assign(line=modelled["case_layout"].map(PLACES))
    names = ["CPU and SMs", "four together", "scattered"]
    what = "scattered rows, four rows together, and the CPU beside the SMs"
    return _over_pool(facts, pd.concat([rows, modelled]), "line", names, what)


def _pools(points: pd.DataFrame) -> list[int]:
    """Sizes in MiB for which the model's rates are drawn."""
    if points.empty:
        return []
    ends = points["case_pool_mib"].min(), points["case_pool_mib"].max()
    return [round(pool) for pool in np.geomspace(*ends, PREDICTED_POOLS)]


def _layouts(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The base step over the size of the pool, a line for each layout, with the model's rates."""
    rows = points[points["case_layout"].isin(LAYOUTS)]
    cases: list[Keys] = [
        {"rows": int(count), "pool_mib": pool, "layout": layout}
        for count in rows["case_rows"].unique()
        for pool in _pools(rows)
        for layout in LAYOUTS
    ]
    rows = pd.concat([rows, _predicted(facts, rows, cases)], ignore_index=True)
    rows = rows.assign(line=rows["case_layout"].map(LAYOUTS))
    what = f"{BASE}, a line for each layout of the rows"
    return _over_pool(facts, rows, "line", list(LAYOUTS.values()), what)


def covered_gib(facts: StudyFacts) -> dict[str, float]:
    """Size of a pool that the held translations of each machine cover, by its calibration."""
    return {
        machine: chip.parameters.held_entries * ENTRY_BYTES / 2**30
        for machine, chip in chips(facts.inputs).items()
        if math.isfinite(chip.parameters.held_entries)
    }


def _held(facts: StudyFacts) -> list[alt.Chart]:
    """A rule at the size that the held translations cover, and its label."""
    covered = covered_gib(facts)
    if not covered:
        return []
    sizes = pd.DataFrame({"pool_gib": [max(covered.values())], "words": ["TLB reach"]})
    at = alt.Chart(sizes).encode(x=alt.X("pool_gib:Q", title=POOL))
    label = at.mark_text(style="limit", align="left", baseline="bottom", dx=5, dy=-4)
    return [
        at.mark_rule(style="limit", strokeWidth=1, strokeDash=[2, 2]),
        label.encode(y=alt.value(HEIGHT_PX), text="words:N"),
    ]


def _predicted(facts: StudyFacts, points: pd.DataFrame, cases: Iterable[Keys]) -> pd.DataFrame:
    """The model's rates of the base step in `cases`, on the machines of `points`, as further
    points."""
    variant = facts.study.variant(BASE)
    of_size = {case["rows"]: case for case in variant.cases}
    known = chips(facts.inputs)
    rows = [
        {f"case_{key}": value for key, value in values.items()}
        | {"pool_gib": case.number("pool_mib") / 1024, "run": run_rows(str(case["layout"]))}
        | {"machine": machine, "variant": BASE, "state": PREDICTED}
        | {"case": case.id, "rate": case.payload_bytes / seconds / 1e9}
        for machine in points["machine"].unique()
        if machine in known
        for values in cases
        for case in [replace(of_size[values["rows"]], values=values)]
        if math.isfinite(seconds := known[machine].seconds(variant, case))
    ]
    # An empty table with the columns' types: joined to another type, numbers would become text.
    return pd.DataFrame(rows, columns=points.columns) if rows else points[:0]


def _ways(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """A row for each of WAYS, with its rate of scattered rows from each size of pool."""
    rows = points[points["variant"].isin(WAYS) & points["case_layout"].isin(ANYWHERE)]
    rows = rows[rows["case_beside"].isna() & (rows["repeated"] <= MAX_REPEATED)]
    # Of steps that were measured in one pool only, nothing can be compared.
    rows = rows.sort_values(["pool_gib", "case_layout"], kind="stable")
    rows = rows.drop_duplicates(["machine", "variant", "case_rows", "pool_gib"])
    shared = rows.groupby(["machine", "case_rows", "pool_gib"])["variant"].transform("nunique")
    rows = rows[shared > 2].sort_values("case_rows", ascending=False, kind="stable")
    if rows.empty:
        return None
    rows = rows.assign(line=rows["variant"].map(WAYS), pool=rows["case_pool_mib"].map(pool_size))
    pools = list(dict.fromkeys(rows.sort_values("pool_gib")["pool"]))
    marks = alt.Chart().mark_point(filled=True, size=70, yOffset=MARK_PX)
    marks = marks.encode(
        x=alt.X("rate:Q", title="payload, GB/s", scale=alt.Scale(zero=True)),
        color=colour("pool", pools, alt.Legend(title="pool")),
        opacity=faded_if_stale(),
    )
    drawing = row_chart("variant", list(WAYS), marks, name="line")
    description = f"{facts.study.title}: payload rate of scattered rows by step and size of pool."
    columns = {"pool": "pool", **BASIS_COLUMNS}
    return Chart(drawing, rows, description, columns, [Select("case_rows", "rows")])


def _over_pool(
    facts: StudyFacts, rows: pd.DataFrame, line: str, order: Sequence[str], what: str
) -> Chart | None:
    """A line for each value of the column `line`, with the model's rates; the TLB reach beneath."""
    if rows.empty:
        return None
    rows = rows.sort_values("case_rows", ascending=False, kind="stable")
    x = alt.X("pool_gib:Q", title=POOL, scale=alt.Scale(type="log", base=2))
    drawing, rows = line_chart(
        rows,
        *(x, alt.Y("rate:Q", title="payload, GB/s"), line, order),
        by=["machine", "case_rows"],
        max_gap=MAX_POOL_GAP,
        beneath=_held(facts),
    )
    description = f"{facts.study.title}: payload rate over the size of the pool: {what}."
    return Chart(drawing, rows, description, BASIS_COLUMNS, [Select("case_rows", "rows")])


def _runs(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The base step in the largest pool over the number of consecutive rows, with the model's
    rates."""
    is_largest = (points["case_pool_mib"] == points["case_pool_mib"].max()) & (
        points["case_rows"] == points["case_rows"].max()
    )
    rows = points[is_largest & points["run"].notna()]
    if rows.empty:
        return None
    pool, count = (int(rows[key].iloc[0]) for key in ("case_pool_mib", "case_rows"))
    cases: list[Keys] = [
        {"rows": count, "pool_mib": pool, "layout": SCATTERED if run == 1 else f"pages_{run}"}
        for run in RUNS
    ]
    rows = pd.concat([rows, _predicted(facts, rows, cases)], ignore_index=True)
    x = alt.X("run:Q", title="consecutive rows", scale=alt.Scale(type="log", base=2))
    y = alt.Y("rate:Q", title="payload, GB/s")
    drawing, rows = line_chart(rows.assign(line="loads first"), x, y, "line", ["loads first"])
    description = (
        f"{facts.study.title}: payload rate from the largest pool over the number of consecutive"
        " rows that are gathered together."
    )
    return Chart(drawing, rows, description, BASIS_COLUMNS)


def _cores(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """Packing of scattered rows over the number of cores that pack, a line per pool. Hosts may have
    different numbers of cores: it is that of most runs."""
    study = facts.study.name
    packing = {
        one.name: one
        for one in facts.study.variants
        if one.path.stem == PACKED and all(re.match(MAX_WORKERS_FLAG, flag) for flag in one.flags)
    }
    rows = points[points["variant"].isin(list(packing)) & (points["case_layout"] == SCATTERED)]
    rows = rows[rows["case_rows"] == rows["case_rows"].max()]
    runs = facts.inputs.runs_of
    rows = rows.assign(
        cores=[
            packing_cores(packing[name], mode(run.host.cores for run in runs[machine, study, name]))
            for name, machine in zip(rows["variant"], rows["machine"], strict=True)
        ],
        pool=rows["case_pool_mib"].map(pool_size),
    )
    counts = rows.groupby(["machine", "pool"])["cores"].transform("nunique")
    rows = rows[rows["cores"].notna() & (counts > 1)].sort_values("pool_gib")
    if rows.empty:
        return None
    scale = alt.Scale(type="log", base=2, nice=False)
    x = alt.X("cores:Q", title="cores that pack", scale=scale)
    y = alt.Y("rate:Q", title="payload, GB/s")
    pools = list(dict.fromkeys(rows["pool"]))
    drawing, rows = line_chart(rows, x, y, "pool", pools, intervals=True)
    description = f"{facts.study.title}: payload rate over the number of cores that pack."
    return Chart(drawing, rows, description, {"cores": "cores", **BASIS_COLUMNS})


def _hosts(facts: StudyFacts) -> Chart | None:
    """A point a round: payload rates of packing and its baselines, over the copy rate of one core
    around the round."""
    shown = (BASE, PACKED, BOTH, CEILING)
    rows = facts.table("rounds")
    rows = rows[rows["variant"].isin(shown) & (rows["metric"] == "host_time")]
    if rows.empty:
        return None
    places = zip(rows["machine"], rows["variant"], rows["case"], strict=True)
    payloads = [
        facts.study.payloads[pair] for pair in zip(rows["variant"], rows["case"], strict=True)
    ]
    rows = rows.assign(
        copied=rows["core_copies"] / 1e9,
        rate=payloads / rows["median"] / 1e9,
        line=rows["variant"].map(WAYS),
        href=[
            samples_address(machine, facts.study.name, variant, case, "host_time")
            for machine, variant, case in places
        ],
    )
    scale = alt.Scale(zero=False)
    points = alt.Chart().mark_point(filled=True, size=45)
    points = points.encode(
        x=alt.X("copied:Q", title="copied by one core of the host, GB/s", scale=scale),
        y=alt.Y("rate:Q", title="payload, GB/s"),
        color=colour("line", list(WAYS.values()), _legend(rows)),
    ).properties(height=HEIGHT_PX)
    description = (
        f"{facts.study.title}: payload rate in every round over what one core of the host copied"
        " around it."
    )
    columns = {"variant": "variant", "run": "run", "round": "round", "rate": "GB/s"}
    return Chart(points, rows, description, columns)


def _legend(rows: pd.DataFrame) -> alt.Legend:
    """A legend of the WAYS in `rows`."""
    return alt.Legend(
        title=None, values=[name for name in WAYS.values() if name in set(rows["line"])]
    )


def pool_size(mib: float) -> str:
    """The size of a pool as on the page: 188 MiB, 40 GiB."""
    return f"{mib:g} MiB" if mib < 1024 else f"{mib / 1024:g} GiB"


def packing_cores(variant: Variant, cores: int | None) -> float:
    """Number of a host's `cores` that pack, as in workers.h: seven of eight, or fewer by the
    variant's flags. NaN if the number of cores is not known."""
    if cores is None:
        return math.nan
    most = re.search(MAX_WORKERS_FLAG, " ".join(variant.flags))
    return min(cores - (cores + 7) // 8, int(most[1]) if most else cores)


def slowdowns(facts: StudyFacts) -> pd.DataFrame:
    """How much longer a kernel takes beside each gather, by what that kernel does."""
    rows = facts.summary[facts.summary["metric"] == "neighbour_slowdown"]
    beside = rows["case"].astype(str).str.extract(r",beside=(\w+)")[0]
    return rows.assign(beside=beside.map(NEIGHBOURS), slowdown=rows["median"])


def _neighbours(facts: StudyFacts) -> Chart | None:
    """A row for each gather and kernel beside it: how much longer that kernel takes."""
    rows = slowdowns(facts)
    if rows.empty:
        return None
    titles = {variant.name: variant.title for variant in facts.study.variants}
    rows = rows.assign(
        row=rows["variant"].map(titles) + ": " + rows["beside"],
        times=rows["slowdown"].map(ratio),
        state=rows["stale"].map({0: "measured", 1: "stale"}),
        href=samples_addresses(rows),
    ).sort_values("slowdown", ascending=False)
    title = "time beside the gather over time alone"
    base = alt.Chart().encode(x=alt.X("slowdown:Q", title=title, scale=log_scale()))
    drawing = row_chart(
        "row",
        list(dict.fromkeys(rows["row"])),
        base.mark_rule(yOffset=MARK_PX).encode(x="ci_low:Q", x2="ci_high:Q"),
        base.mark_point(filled=True, size=70, yOffset=MARK_PX).encode(opacity=faded_if_stale()),
        figure="times",
    )
    description = f"{facts.study.title}: how much longer a kernel takes beside each gather."
    columns = {"variant": "variant", "beside": "beside", "times": "times as long", "case": "case"}
    return Chart(drawing, rows, description, columns)
