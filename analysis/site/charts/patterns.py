"""Maps: a cell with a figure for each row and column; and times over a reference's by pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.base.quantities import INTERVAL, quantity, ratio, ratio_interval
from analysis.site.charts.theme import Chart, Select, present
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Study

MEAN: Final = "geometric mean"
CELL_PX: Final = 20
"""Height of a cell."""


def map_chart(
    x: alt.X,
    y: alt.Y,
    colour: alt.Color,
    table: pd.DataFrame,
    description: str,
    columns: Mapping[str, str],
    selects: Sequence[Select] = (),
    *,
    opacity: Any = alt.Undefined,
    cell_px: int = CELL_PX,
) -> Chart:
    """A cell for each row of `table`, with its `figure`, which is short enough for a phone."""
    base = alt.Chart().encode(x=x, y=y)
    drawing = alt.layer(
        base.mark_rect().encode(color=colour, opacity=opacity),
        base.mark_text(fontSize=10, color="white", lineBreak="\n").encode(text="figure:N"),
    ).properties(height=alt.Step(cell_px))
    return Chart(drawing, table, description, columns, selects)


def worse_to_better(worst: float, even: float, best: float) -> alt.Scale:
    """Colours of cells, from red over grey to green, that go with either palette."""
    ends = {worst: "#b03a3a", even: "#7b8089", best: "#0a7f65"}
    domain = sorted(ends)
    return alt.Scale(type="log", domain=domain, range=[ends[at] for at in domain], clamp=True)


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


def two_digits(value: float) -> str:
    """A ratio in two digits: 0.12, 1.2, 12."""
    decimals = 2 if value < 0.995 else 1 if value < 9.95 else 0
    return f"{value:.{decimals}f}"


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
