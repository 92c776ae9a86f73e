"""Maps: a cell with a figure for each row and column; and times over a reference's by pattern."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
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
    axis = alt.Axis(orient="top", labelAngle=-90, labelLimit=130)
    patterns = [*dict.fromkeys(_patterns(study)), MEAN]
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
    pattern, paired by rounds."""
    table = _seconds(facts)
    theirs = table[table["variant"] == over][["machine", "pattern", "seconds"]]
    table = table[table["variant"] != over]
    table = table.merge(theirs, on=["machine", "pattern"], suffixes=("", "_over"))
    table = pd.DataFrame(_ratios(facts, table, over))
    if table.empty:
        return None
    table = pd.concat([table, _means(table)], ignore_index=True)
    table = table.assign(
        label=table["value"].map(ratio),
        time=[quantity(value, "s") for value in table["seconds"]],
        time_over=[quantity(value, "s") for value in table["seconds_over"]],
    )
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


def _seconds(facts: StudyFacts) -> pd.DataFrame:
    """Median op_time by machine, variant and pattern, of the cases replayed in C++."""
    names = {variant.name for variant in facts.study.subjects}
    rows = [
        (row.machine, row.variant, row.case.removeprefix("pattern="), row.median)
        for row in facts.figures.fresh("op_time")
        if "." not in row.case and row.variant in names
    ]
    return pd.DataFrame(rows, columns=["machine", "variant", "pattern", "seconds"])


def _ratios(facts: StudyFacts, table: pd.DataFrame, over: str) -> Iterator[dict[Hashable, object]]:
    """The rows of `table` that some run has beside those of `over`, with `value` and `interval`."""
    for row in table.to_dict("records"):
        case = f"pattern={row['pattern']}"
        paired = facts.figures.ratios.get((row["machine"], row["variant"], over, case, "op_time"))
        if paired is not None:
            interval = ratio_interval(paired.ci_low, paired.ci_high)
            yield {**row, "value": paired.ratio, "interval": interval}


def _means(table: pd.DataFrame) -> pd.DataFrame:
    """The geometric mean of the ratios of each variant that has one in every pattern."""
    groups = table.groupby(["machine", "variant"])
    means = groups.agg(value=("value", geometric_mean), count=("pattern", "nunique")).reset_index()
    full = means[means["count"] == table["pattern"].nunique()]
    return full.drop(columns="count").assign(pattern=MEAN, interval="")


def _patterns(study: Study) -> Iterator[str]:
    for variant in study.variants:
        for case in variant.cases:
            yield str(case["pattern"]).rpartition(".")[2]
