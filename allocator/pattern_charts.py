"""Charts of allocators by pattern: memory and time of some variants, relative to a reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import altair as alt
import numpy as np
import pandas as pd

from analysis.api.charts import Chart, StudyFacts, colour, fresh_figures, log_scale, present
from analysis.api.quantities import INTERVAL, ratio, ratio_interval

METRIC: Final = "op_time"
REFERENCE: Final = "torch_caching"
BAR_PX: Final = 6
GAP_PX: Final = 4
"""Between the bars of two patterns."""
COLUMNS: Final = alt.ExprRef("width < 450 ? 1 : 5")
"""Of the legend, which begins beside the names of patterns."""


def by_pattern(
    table: pd.DataFrame,
    names: Mapping[str, str],
    title: str,
    description: str,
    columns: Mapping[str, str],
) -> Chart | None:
    """Bars from 1 to the `value` of each row of `table`, by its `pattern` and its `variant`, one of
    `names`, which has their titles; the patterns with the largest differences first. None without
    rows."""
    table = table[table["variant"].isin(names)]
    if table.empty:
        return None
    table = table.assign(
        name=table["variant"].map(names), pattern=table["pattern"].str.replace("_", " ")
    )
    shown = present(names.values(), table["name"])
    distance = abs(np.log(table["value"])).groupby(table["pattern"]).max()
    patterns = list(distance.sort_values(ascending=False).index)
    axis = alt.Axis(format="~g", values=[0.01, 0.1, 0.5, 1, 2, 3, 5, 7, 10])
    words = alt.Axis(labelLimit=130, labelOverlap=False)
    legend = alt.Legend(title=None, columns=COLUMNS, values=shown)
    marks = alt.Chart().encode(
        x=alt.X("value:Q", title=title, scale=log_scale(), axis=axis),
        y=alt.Y("pattern:N", sort=patterns, title=None, axis=words),
        yOffset=alt.YOffset("name:N", sort=shown),
        color=colour("name", [*names.values()], legend),
    )
    bars = marks.mark_bar(height=BAR_PX - 1).encode(x2=alt.X2Datum(1))
    # A bar without a length has an end all the same, as it was measured.
    ends = marks.mark_tick(height=BAR_PX - 1, thickness=2, opacity=1)
    height = alt.Step(BAR_PX * len(shown) + GAP_PX, **{"for": "position"})
    drawing = alt.layer(bars, ends).properties(height=height)
    table = table.assign(label=table["value"].map(ratio))
    return Chart(
        drawing, table, description, {"pattern": "pattern", "name": "allocator", **columns}
    )


def speeds(facts: StudyFacts, names: Mapping[str, str]) -> Chart | None:
    """Time of PyTorch's allocator over that of each of `names`, by pattern, paired by rounds; of
    the cases replayed in C++."""
    rows = fresh_figures(facts, METRIC)
    rows = rows[~rows["case"].str.contains(".", regex=False)]
    key = ["machine", "case"]
    theirs = rows[rows["variant"] == REFERENCE].set_index(key)["short"]
    paired = [
        (one.machine, one.case, one.variant, one.ratio, ratio_interval(one.ci_low, one.ci_high))
        for one in facts.ratios.values()
        if (one.against, one.metric) == (REFERENCE, METRIC)
    ]
    ratios = pd.DataFrame(paired, columns=[*key, "variant", "value", "interval"])
    rows = rows.drop(columns="interval").join(theirs.rename("time_over"), on=key)
    return by_pattern(
        rows.merge(ratios, on=[*key, "variant"]),
        names,
        "times as fast as PyTorch's allocator",
        "speed of each variant relative to PyTorch, by pattern.",
        {
            "label": "times as fast as PyTorch",
            "interval": INTERVAL,
            "short": "time",
            "time_over": "time of PyTorch",
        },
    )
