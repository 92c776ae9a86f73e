"""Charts of this study: rates over the size of the pool, by layout and by variant, and over the
number of consecutive rows; the cost of a gather to a kernel beside it. Charts of variants without
the CPU also show the model's rates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import (
    HEIGHT_PX,
    Chart,
    StudyFacts,
    chips,
    finish,
    line_colour,
    line_panels,
    panels,
    samples_address,
    select,
    stale_shape,
    tooltip,
)
from analysis.api.model import ENTRY_BYTES, PREDICTED
from analysis.api.study import CaseValue, Variant

Keys = dict[str, CaseValue]
"""Keys of a case with their values."""

BASE: Final = "loads_first"
CEILING: Final = "ceiling_copy_engine"
BESIDE_STEPS: Final = ("few_sms", CEILING)
"""Variants with a colour beside the steps; there are no more colours."""
BOTH: Final = "both_engines"
PACKED: Final = "packed_by_cpu"
"""Source file of all variants in which the CPU alone packs."""
MAX_WORKERS_FLAG: Final = r"-DMOST_WORKERS=(\d+)"
"""The flag for the maximum number of cores that pack."""
MODEL: Final = "link model"
"""Name in place of a variant for predicted rates."""
SCATTERED: Final = "scattered"
LAYOUTS: Final = (SCATTERED, "pages_64", "contiguous")
POOL: Final = "pool, GiB"
PREDICTED_POOLS: Final = 41
"""Number of pool sizes with a predicted rate."""
RUNS: Final = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64)


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`layouts`, `ways`, `runs`, `cores`, `hosts` and `neighbours`, as far as measured. Charts with
    the CPU show host times, which include its work; the others show device times, as the model
    predicts them."""
    points = facts.points
    points = points[points["rate"].notna() & points["case_pause_ms"].isna()]
    points = points.assign(
        pool_gib=points["case_pool_mib"] / 1024, run=points["case_layout"].map(run_rows)
    )
    on_device = points[(points["variant"] == BASE) & (points["metric"] == "gpu_time")]
    by_host = points[points["metric"] == "host_time"]
    return {
        "layouts": _layouts(facts, on_device),
        "ways": _ways(facts, by_host),
        "runs": _runs(facts, on_device),
        "cores": _cores(facts, by_host),
        "hosts": _hosts(facts),
        "neighbours": _neighbours(facts, by_host),
    }


def run_rows(layout: str) -> int | None:
    """Number of consecutive rows per run; None for layouts without runs.

    The rows of `scattered` are runs of one.
    """
    if layout == SCATTERED:
        return 1
    found = re.fullmatch(r"pages_(\d+)", layout)
    return int(found[1]) if found else None


def _layouts(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """The base step over the size of the pool, a line per layout, with the model's rates, and a
    rule at the size that the held translations cover."""
    rows = points[points["case_layout"].isin(LAYOUTS)]
    if rows.empty:
        return None
    ends = rows["case_pool_mib"].min(), rows["case_pool_mib"].max()
    cases: list[Keys] = [
        {"rows": int(count), "pool_mib": round(pool), "layout": layout}
        for count in rows["case_rows"].unique()
        for pool in np.geomspace(*ends, PREDICTED_POOLS)
        for layout in LAYOUTS
    ]
    colour = line_colour("case_layout", LAYOUTS, "layout")
    rows = pd.concat([rows, _predicted(facts, rows, cases)], ignore_index=True)
    rows = rows.assign(held_gib=rows["machine"].map(covered_gib(facts)))
    what = f"{BASE}, a line for each layout of the rows"
    return _over_pool(facts, rows, colour, what, beneath=_held(rows))


def covered_gib(facts: StudyFacts) -> dict[str, float]:
    """Size of a pool that the held translations of each machine cover, by its calibration."""
    return {
        machine: chip.parameters.held_entries * ENTRY_BYTES / 2**30
        for machine, chip in chips(facts.inputs).items()
        if math.isfinite(chip.parameters.held_entries)
    }


def _held(rows: pd.DataFrame) -> list[alt.Chart]:
    """A rule at that size and its label; nothing if no machine's size is known."""
    if rows["held_gib"].isna().all():
        return []
    words = "'held translations cover ' + format(datum.held_gib, '.2~f') + ' GiB'"
    at = (
        alt.Chart()
        .transform_aggregate(held_gib="max(held_gib)")
        .transform_filter("isValid(datum.held_gib)")
        .transform_calculate(held=words)
        .encode(x=alt.X("held_gib:Q", title=POOL))
    )
    label = at.mark_text(style="ceiling", align="left", baseline="bottom", dx=5, dy=-4)
    return [
        at.mark_rule(style="ceiling", strokeWidth=1),
        label.encode(y=alt.value(HEIGHT_PX), text="held:N"),
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
        | {"machine": machine, "variant": MODEL, "state": PREDICTED}
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
    """Scattered rows over the size of the pool, a line per step and one for the link's limit."""
    shown = [*(step.name for step in facts.study.with_role("step")), CEILING]
    rows = points[points["variant"].isin(shown) & (points["case_layout"] == SCATTERED)]
    what = "scattered rows, by every step and the copy engine"
    # A line ends at a pool that the variant has not been measured with.
    places = rows["case_pool_mib"].rank(method="dense")
    of_line = [rows[key] for key in ("machine", "variant", "case_rows")]
    rows = rows.assign(stretch=places - places.groupby(of_line).rank(method="dense"))
    return _over_pool(facts, rows, _variant_colour(facts, rows), what, detail="stretch:N")


def _variant_colour(facts: StudyFacts, rows: pd.DataFrame) -> alt.Color:
    """The colour of a variant in `rows`, the same in all charts of the page."""
    return line_colour("variant", _coloured(facts), None, set(rows["variant"]))


def _coloured(facts: StudyFacts) -> list[str]:
    """Variants that have a colour."""
    return [*(step.name for step in facts.study.with_role("step")), *BESIDE_STEPS]


def _over_pool(
    facts: StudyFacts,
    rows: pd.DataFrame,
    colour: alt.Color,
    what: str,
    *,
    detail: str | None = None,
    beneath: Sequence[alt.Chart] = (),
) -> Chart | None:
    """A line per colour, and per `detail` if given; `beneath` as in `line_panels`."""
    if rows.empty:
        return None
    counts = sorted(int(count) for count in rows["case_rows"].unique())
    base = (
        alt.Chart()
        .encode(
            x=alt.X("pool_gib:Q", title=POOL, scale=alt.Scale(type="log", base=2)),
            y=alt.Y("rate:Q", title="payload, GB/s"),
            color=colour,
            detail=alt.Detail(detail) if detail else alt.Undefined,
        )
        .transform_filter("datum.case_rows === rows_shown")
    )
    description = (
        f"{facts.study.title}: payload rate over the size of the pool: {what}, for"
        f" {len(facts.machines)} machines."
    )
    chosen = select("rows_shown", "rows", counts, counts[-1])
    return line_panels(facts, rows, base, description, chosen, beneath=beneath)


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
    x = alt.X("run:Q", title="consecutive rows", scale=alt.Scale(type="log", base=2))
    base = alt.Chart().encode(x=x, y=alt.Y("rate:Q", title="payload, GB/s"))
    description = (
        f"{facts.study.title}: payload rate from the largest pool over the number of consecutive"
        f" rows that are gathered together, for {len(facts.machines)} machines."
    )
    rows = pd.concat([rows, _predicted(facts, rows, cases)], ignore_index=True)
    return line_panels(facts, rows, base, description)


def _cores(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """Packing of scattered rows over the number of cores that pack, a line per pool."""
    packing = {
        one.name: one
        for one in facts.study.variants
        if one.path.stem == PACKED and all(re.match(MAX_WORKERS_FLAG, flag) for flag in one.flags)
    }
    rows = points[points["variant"].isin(list(packing)) & (points["case_layout"] == SCATTERED)]
    rows = rows[rows["case_rows"] == rows["case_rows"].max()]
    described = facts.inputs.machines
    rows = rows.assign(
        cores=[
            packing_cores(packing[name], described[machine].get("cores"))
            for name, machine in zip(rows["variant"], rows["machine"], strict=True)
        ],
        pool=rows["case_pool_mib"].map(pool_size),
    )
    counts = rows.groupby(["machine", "pool"])["cores"].transform("nunique")
    rows = rows[rows["cores"].notna() & (counts > 1)].sort_values("pool_gib")
    if rows.empty:
        return None
    base = alt.Chart().encode(
        x=alt.X(
            "cores:Q", title="cores that pack", scale=alt.Scale(type="log", base=2, nice=False)
        ),
        y=alt.Y("rate:Q", title="payload, GB/s"),
        color=line_colour("pool", list(dict.fromkeys(rows["pool"])), "pool"),
    )
    description = (
        f"{facts.study.title}: payload rate over the number of cores that pack, for"
        f" {len(facts.machines)} machines."
    )
    return line_panels(facts, rows, base, description, with_intervals=True)


def _hosts(facts: StudyFacts) -> Chart | None:
    """A panel per machine, a point per round: payload rates of packing and its baselines, over the
    copy rate of one core around the round."""
    shown = (BASE, PACKED, BOTH, CEILING)
    rows = facts.rounds
    rows = rows[rows["variant"].isin(shown) & (rows["metric"] == "host_time")]
    if rows.empty:
        return None
    payloads = facts.study.payloads
    rows = rows.assign(
        copied=rows["core_copies"] / 1e9,
        rate=[
            payloads[variant, case] / seconds / 1e9
            for variant, case, seconds in zip(
                rows["variant"], rows["case"], rows["median"], strict=True
            )
        ],
        href=[
            samples_address(machine, facts.study.name, variant, case, "host_time")
            for machine, variant, case in zip(
                rows["machine"], rows["variant"], rows["case"], strict=True
            )
        ],
    )
    scale = alt.Scale(zero=False)
    title, axis = "copied by one core of the host, GB/s", alt.Axis(tickCount=6)
    x = alt.X("copied:Q", title=title, scale=scale, axis=axis)
    fields = ["variant:N", "run:N", "round:Q", "copied:Q", "rate:Q"]
    points = (
        alt.Chart()
        .mark_point(filled=True, size=45, cursor="pointer")
        .encode(
            x=x,
            y=alt.Y("rate:Q", title="payload, GB/s"),
            color=_variant_colour(facts, rows),
            href="href:N",
            tooltip=fields,
        )
    )
    layers = alt.layer(points.properties(height=HEIGHT_PX))
    description = (
        f"{facts.study.title}: payload rate in every round over what one core of the host copied"
        f" around it, for {len(facts.machines)} machines."
    )
    return finish(panels(layers, rows), description, margin=70, compact_margin=60)


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


def slowdowns(facts: StudyFacts, points: pd.DataFrame) -> pd.DataFrame:
    """The rate of each gather alone, and the slowdown of the kernel `beside` it in the same
    case."""
    rows = facts.summary[facts.summary["metric"] == "neighbour_slowdown"]
    parts = rows["case"].astype(str).str.extract(r"(.*),beside=(\w+)")
    rows = rows.assign(case=parts[0], beside=parts[1], slowdown=rows["median"])
    columns = ["machine", "variant", "case", "beside", "slowdown", "ci_low", "ci_high"]
    return rows[columns].merge(points, on=["machine", "variant", "case"])


def _neighbours(facts: StudyFacts, points: pd.DataFrame) -> Chart | None:
    """A panel per machine, a point per variant with a colour: its rate and the slowdown."""
    rows = slowdowns(facts, points)
    rows = rows[rows["variant"].isin(_coloured(facts))]
    if rows.empty:
        return None
    kinds = sorted(rows["beside"].unique())
    rate = alt.X("rate:Q", title="payload of the gather alone, GB/s")
    title = "time beside the gather over time alone"
    slowdown = alt.Y("slowdown:Q", title=title, scale=alt.Scale(zero=False))
    base = (
        alt.Chart()
        .encode(x=rate, color=_variant_colour(facts, rows))
        .transform_filter("datum.beside === beside_shown")
    )
    layers = alt.layer(
        base.mark_rule().encode(y="ci_low:Q", y2="ci_high:Q"),
        base.mark_point(filled=True, size=70, cursor="pointer").encode(
            y=slowdown, shape=stale_shape(), href="href:N", tooltip=[*tooltip(facts), "slowdown:Q"]
        ),
    ).properties(height=HEIGHT_PX)
    description = (
        f"{facts.study.title}: how much longer a kernel takes beside a gather, over the rate of the"
        f" gather, for {len(facts.machines)} machines."
    )
    chosen = select("beside_shown", "beside", kinds, kinds[0])
    return finish(panels(layers, rows, chosen), description, margin=70, compact_margin=60)
