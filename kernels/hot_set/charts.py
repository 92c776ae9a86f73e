"""Charts of this study: time over the misses of a step, and the bytes that policies fetch."""

from __future__ import annotations

from collections import Counter
from typing import Final

import altair as alt

from analysis.api.charts import Chart, StudyFacts, line_colour, line_panels, select, si_axis
from analysis.api.study import parse_case

from .cells import (
    FETCH_ALL,
    PUBLISHED_WAY,
    SCATTERED,
    USUAL_KEYS,
    cells,
    fastest,
    of_variants,
    step_names,
)
from .policy_chart import policies

SHOWN_STEPS: Final = 6
"""Maximum number of steps that are drawn because they are the fastest somewhere."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`misses`: host time over the misses of a step; `policies`: bytes fetched beyond the
    optimum."""
    return {"misses": misses(facts), "policies": policies(facts)}


def misses(facts: StudyFacts) -> Chart | None:
    """Host time over the share of rows that is missing: of the steps that are the fastest in some
    case, of the published way, and of the misses alone."""
    points = facts.points
    names = [*_shown_steps(facts), FETCH_ALL]
    rows = points[points["variant"].isin(names)]
    rows = rows[(rows["metric"] == "host_time") & rows["seconds"].notna()]
    is_usual = rows["case"].map(lambda case: parse_case(case).keys() == USUAL_KEYS)
    rows = rows[is_usual & (rows["case_layout"] == SCATTERED)]
    if rows.empty:
        return None
    sizes = rows["case_pool_mib"].map(lambda mib: f"{mib / 1024:.3g} GiB")
    rows = rows.assign(
        pool=sizes,
        batch=[f"{requests:.0f}" for requests in rows["case_requests"]],
        missing=rows["case_misses"] / (rows["case_requests"] * rows["case_topk"]),
    )
    shares = alt.Axis(format="~%")
    log = alt.Scale(type="log")
    base = (
        alt.Chart()
        .encode(
            x=alt.X("missing:Q", title="rows that are missing", axis=shares, scale=log),
            y=alt.Y("seconds:Q", title="host time", axis=si_axis("s"), scale=log),
            color=line_colour("variant", names, None, set(rows["variant"])),
            detail="batch:N",
        )
        .transform_filter("datum.pool === pool_shown")
    )
    pools = list(dict.fromkeys(rows.sort_values("case_pool_mib")["pool"]))
    what = f"{facts.study.title}: host time over the share of rows that are missing in a step."
    return line_panels(facts, rows, base, what, select("pool_shown", "pool", pools, pools[-1]))


def _shown_steps(facts: StudyFacts) -> list[str]:
    """The published way and the steps that are most often the fastest, in the order of steps."""
    steps = step_names(facts)
    wins = Counter(cell.variant for cell in fastest(of_variants(cells(facts), steps)))
    shown = {PUBLISHED_WAY, *(name for name, _ in wins.most_common(SHOWN_STEPS))}
    return [name for name in steps if name in shown]
