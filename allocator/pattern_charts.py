"""Charts of allocators by pattern: memory and time of each variant, relative to a reference."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import geometric_mean
from typing import Final

import altair as alt
import pandas as pd

from analysis.api.charts import (
    Chart,
    StudyFacts,
    map_chart,
    present,
    two_digits,
    worse_to_better,
)
from analysis.api.quantities import INTERVAL, quantity, ratio, ratio_interval
from analysis.api.study import Study

MEAN: Final = "geometric mean"


def by_pattern(
    study: Study, table: pd.DataFrame, colour: alt.Color, what: str, columns: Mapping[str, str]
) -> Chart:
    """A cell for each row of `table`, by its `pattern` and `variant`, with its `value` in two
    digits."""
    names = present(study.variant_names, table["variant"])
    cases = (case for variant in study.variants for case in variant.cases)
    patterns = [*dict.fromkeys(str(case["pattern"]).rpartition(".")[2] for case in cases), MEAN]
    axis = alt.Axis(orient="top", labelAngle=-90, labelLimit=130)
    return map_chart(
        alt.X("variant:N", sort=names, title=None, axis=axis),
        alt.Y("pattern:N", sort=patterns, title=None, axis=alt.Axis(labelLimit=110)),
        colour,
        table.assign(figure=table["value"].map(two_digits)),
        what,
        {"pattern": "pattern", "variant": "variant", **columns},
    )


def heat(facts: StudyFacts, over: str, called: str) -> Chart | None:
    """Time of the variant `over`, which readers know as `called`, over that of each other one, by
    pattern, paired by rounds; of the cases replayed in C++."""
    metric, subjects = "op_time", {variant.name for variant in facts.study.subjects}
    rows = []
    for row in facts.fresh(metric):
        paired = facts.ratios.get((row.machine, row.variant, over, row.case, metric))
        theirs = facts.find(row.machine, over, row.case, metric)
        if "." in row.case or row.variant not in subjects or paired is None or theirs is None:
            continue
        rows.append(
            {
                "machine": row.machine,
                "variant": row.variant,
                "pattern": row.case.removeprefix("pattern="),
                "value": paired.ratio,
                "interval": ratio_interval(paired.ci_low, paired.ci_high),
                "time": quantity(row.median, "s"),
                "time_over": quantity(theirs.median, "s"),
            }
        )
    if not rows:
        return None
    table = pd.DataFrame(rows)
    # The mean of a variant that lacks a pattern would be of other patterns than the rest.
    groups = table.groupby(["machine", "variant"], as_index=False)
    means = groups.agg(value=("value", geometric_mean), count=("pattern", "nunique"))
    means = means[means["count"] == table["pattern"].nunique()].assign(pattern=MEAN, interval="")
    table = pd.concat([table, means.drop(columns="count")], ignore_index=True)
    table = table.assign(label=table["value"].map(ratio))
    title = f"speed relative to {called}"
    legend = alt.Legend(title=title, orient="bottom", format="~g", columns=1)
    colour = alt.Color("value:Q", scale=worse_to_better(0.01, 1, 30), legend=legend)
    columns = {
        "label": f"times as fast as {called}",
        "interval": INTERVAL,
        "time": "time",
        "time_over": f"time of {called}",
    }
    what = f"{facts.study.title}: speed of each variant relative to {called}, by pattern."
    return by_pattern(facts.study, table, colour, what, columns)
