"""Maps of replayed patterns: a cell for each pattern and variant, and times over a reference's."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from statistics import geometric_mean
from typing import Any, Final

import altair as alt
import pandas as pd

from analysis.base.quantities import INTERVAL, quantity, ratio, ratio_interval
from analysis.site.charts.rows import NAME_PX, named_rows
from analysis.site.charts.theme import CELL_PX, Chart, finish, present
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Study

MEAN: Final = "geometric mean"
ROW_PX: Final = 16
"""Height of a cell."""
COMPACT_CELL_PX: Final = 26
"""Width of a cell with a figure of two digits."""
COMPACT_MARGIN_PX: Final = 12


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
    table["label"] = [ratio(value) for value in table["ratio"]]
    table["time"] = [quantity(value, "s") for value in table["seconds"]]
    table["time_over"] = [quantity(value, "s") for value in table["seconds_over"]]
    colour = alt.Color(
        "ratio:Q",
        scale=worse_to_better(0.01, 1, 30),
        legend=alt.Legend(title=f"speed relative to {called}", orient="bottom", format="~g"),
    )
    tooltip = [
        alt.Tooltip("label:N", title=f"times as fast as {called}"),
        alt.Tooltip("interval:N", title=INTERVAL),
        "time:N",
        alt.Tooltip("time_over:N", title=f"time of {called}"),
    ]
    description = f"Speed of each variant relative to {called}, in every pattern, on every machine."
    return by_pattern(facts.study, table, colour, tooltip, description)


def _seconds(facts: StudyFacts) -> pd.DataFrame:
    """Median op_time by machine, variant and pattern, of the cases replayed in C++."""
    names = {variant.name for variant in facts.study.subjects}
    rows = [
        (row.machine, row.variant, row.case.removeprefix("pattern="), row.median)
        for row in facts.figures.fresh("op_time")
        if "." not in row.case and row.variant in names
    ]
    return pd.DataFrame(rows, columns=["machine", "variant", "pattern", "seconds"])


def worse_to_better(worst: float, even: float, best: float) -> alt.Scale:
    """Colours of the cells, from red over grey to green, that go with either palette."""
    ends = {worst: "#b03a3a", even: "#8a8f98", best: "#0a8f72"}
    domain = sorted(ends)
    return alt.Scale(type="log", domain=domain, range=[ends[at] for at in domain], clamp=True)


def by_pattern(
    study: Study, table: pd.DataFrame, colour: alt.Color, tooltip: Sequence[Any], what: str
) -> Chart:
    """A cell for each row of `table`, by its `pattern` and `variant`, with its `label`.

    In a narrow column, cells are as narrow as a figure of two digits, and patterns are named above
    their cells.
    """
    names = present(study.variant_names, table["variant"])
    angle = alt.ExprRef("compact ? -90 : -40")
    axis = alt.Axis(orient="top", labelAngle=angle, labelAlign="left", labelBaseline="middle")
    padding = alt.ExprRef(f"compact ? {NAME_PX / (ROW_PX + NAME_PX):.3f} : 0")
    row = named_rows("pattern", [*dict.fromkeys(_patterns(study)), MEAN])
    row = row.scale(paddingInner=padding, paddingOuter=padding)
    base: Any = alt.Chart().encode(x=alt.X("variant:N", sort=names, title=None, axis=axis), y=row)
    cells = base.mark_rect().encode(
        color=colour, tooltip=["machine:N", "pattern:N", "variant:N", *tooltip]
    )
    figures = base.transform_calculate(figure=_figure(str(colour.shorthand))).mark_text(
        fontSize=10, color="white"
    )
    chart = (
        alt.layer(cells, figures.encode(text="figure:N"), _names(row))
        .properties(height=alt.Step(ROW_PX, **{"for": "position"}))
        .facet(facet=alt.Facet("machine:N", title=None), columns=1, data=table)
        .resolve_axis(x="independent")
    )
    return finish(
        chart,
        what,
        margin=180,
        compact_margin=COMPACT_MARGIN_PX,
        least=CELL_PX * len(names),
        compact_least=COMPACT_CELL_PX * len(names),
        compact_row_px=ROW_PX + NAME_PX,
    )


def _figure(shorthand: str) -> str:
    """The label of a cell or, in a narrow column, its value with two digits, as an expression."""
    value = f"datum.{shorthand.partition(':')[0]}"
    digits = f"{value} < 0.995 ? '.2f' : {value} < 9.95 ? '.1f' : '.0f'"
    short = f"{value} < 0.005 ? '<.01' : replace(format({value}, {digits}), /^0/, '')"
    return f"compact ? ({short}) : datum.label"


def _names(row: alt.Y) -> alt.Chart:
    """The name of each pattern above its cells in a narrow column."""
    opacity: Any = {"expr": "compact ? 1 : 0"}
    names: alt.Chart = (
        alt.Chart()
        .transform_window(place="row_number()", groupby=["machine", "pattern"])
        .transform_filter("datum.place === 1")
        .mark_text(align="left", dy=1 - NAME_PX / 2, fontSize=10, opacity=opacity)
        .encode(x=alt.value(0), y=row.bandPosition(0), text="pattern:N")
    )
    return names


def _ratios(facts: StudyFacts, table: pd.DataFrame, over: str) -> Iterator[dict[Hashable, object]]:
    """The rows of `table` that some run has beside those of `over`, with `ratio` and `interval`."""
    for row in table.to_dict("records"):
        case = f"pattern={row['pattern']}"
        paired = facts.figures.ratios.get((row["machine"], row["variant"], over, case, "op_time"))
        if paired is not None:
            interval = ratio_interval(paired.ci_low, paired.ci_high)
            yield {**row, "ratio": paired.ratio, "interval": interval}


def _means(table: pd.DataFrame) -> pd.DataFrame:
    """The geometric mean of the ratios of each variant that has one in every pattern."""
    groups = table.groupby(["machine", "variant"])
    means = groups.agg(ratio=("ratio", geometric_mean), count=("pattern", "nunique")).reset_index()
    full = means[means["count"] == table["pattern"].nunique()]
    return full.drop(columns="count").assign(pattern=MEAN, interval="")


def _patterns(study: Study) -> Iterator[str]:
    for variant in study.variants:
        for case in variant.cases:
            yield str(case["pattern"]).rpartition(".")[2]
