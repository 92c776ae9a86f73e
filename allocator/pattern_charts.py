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
    fresh_figures,
    map_chart,
    present,
    two_digits,
    worse_to_better,
)
from analysis.api.quantities import INTERVAL, ratio, ratio_interval

MEAN: Final = "geometric mean"
METRIC: Final = "op_time"
REFERENCE: Final = "torch_caching"


def by_pattern(
    facts: StudyFacts,
    table: pd.DataFrame,
    scale: alt.Scale,
    title: str,
    description: str,
    columns: Mapping[str, str],
) -> Chart | None:
    """A cell for each row of `table`, by its `pattern` and `variant`, with its `value` in two
    digits, in a colour of `scale` with a legend of this title; None without rows."""
    if table.empty:
        return None
    names = present(facts.study.variant_names, table["variant"])
    cases = (case for variant in facts.study.variants for case in variant.cases)
    patterns = [*dict.fromkeys(str(case["pattern"]).rpartition(".")[2] for case in cases), MEAN]
    axis = alt.Axis(orient="top", labelAngle=-90, labelLimit=130)
    legend = alt.Legend(title=title, orient="bottom", format="~g", columns=1)
    return map_chart(
        alt.X("variant:N", sort=names, title=None, axis=axis),
        alt.Y("pattern:N", sort=patterns, title=None, axis=alt.Axis(labelLimit=110)),
        alt.Color("value:Q", scale=scale, legend=legend),
        table.assign(figure=table["value"].map(two_digits), label=table["value"].map(ratio)),
        description,
        {"pattern": "pattern", "variant": "variant", **columns},
    )


def heat(facts: StudyFacts) -> Chart | None:
    """Time of PyTorch's allocator over that of each other one, by pattern, paired by rounds; of the
    cases replayed in C++."""
    subjects = [variant.name for variant in facts.study.subjects]
    rows = fresh_figures(facts, METRIC)
    rows = rows[rows["variant"].isin(subjects) & ~rows["case"].str.contains(".", regex=False)]
    key = ["machine", "case"]
    theirs = rows[rows["variant"] == REFERENCE].set_index(key)["short"]
    paired = [
        (one.machine, one.case, one.variant, one.ratio, ratio_interval(one.ci_low, one.ci_high))
        for one in facts.ratios.values()
        if (one.against, one.metric) == (REFERENCE, METRIC)
    ]
    ratios = pd.DataFrame(paired, columns=[*key, "variant", "value", "interval"])
    rows = rows.drop(columns="interval").join(theirs.rename("time_over"), on=key)
    table = rows.merge(ratios, on=[*key, "variant"])
    # The mean of a variant that lacks a pattern would be of other patterns than the rest.
    groups = table.groupby(["machine", "variant"], as_index=False)
    means = groups.agg(value=("value", geometric_mean), count=("pattern", "nunique"))
    means = means[means["count"] == table["pattern"].nunique()].assign(pattern=MEAN, interval="")
    return by_pattern(
        facts,
        pd.concat([table, means], ignore_index=True),
        worse_to_better(0.01, 1, 30),
        "speed relative to PyTorch",
        "speed of each variant relative to PyTorch, by pattern.",
        {
            "label": "times as fast as PyTorch",
            "interval": INTERVAL,
            "short": "time",
            "time_over": "time of PyTorch",
        },
    )
