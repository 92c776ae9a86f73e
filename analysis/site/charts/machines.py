"""Machines against each other: a row a variant, the ratio of two machines' speeds, those that
differ most first."""

from __future__ import annotations

from typing import Final

import altair as alt
import pandas as pd

from analysis.base.quantities import INTERVAL, ratio, ratio_interval, speed
from analysis.site.charts.theme import (
    GREY,
    WIDE_LABELS,
    Chart,
    finish,
    present,
    select,
    text_tooltip,
)
from analysis.site.facts.addresses import samples_address
from analysis.site.facts.comparison import (
    EQUAL,
    FASTER,
    SLOWER,
    UNCLEAR,
    Comparison,
    Ratio,
)
from analysis.study import parse_case

ROW_PX: Final = 17
FEW: Final = 30
"""Number of rows that are shown at first."""
KINDS: Final = {
    "machine": "all other machines",
}
VERDICTS: Final = [FASTER, SLOWER, EQUAL, *(" ", "  "), UNCLEAR]
"""In the order of their colours; undecided comparisons are grey."""
assert VERDICTS[GREY] == UNCLEAR
COLUMNS: Final = [
    *("machine", "against", "kind", "study", "variant", "title", "case", "metric", "verdict"),
    *(
        "ratio",
        "ratio_low",
        "ratio_high",
        "place",
        "label",
        "interval",
        "figure",
        "other",
        "href",
    ),
]
TICKS: Final = [
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5),
    *(2, 3, 5, 10, 20, 50, 100, 200, 500, 1000),
]
TITLE: Final = "times as fast as the other"
LABEL_PX: Final = 320
COMPACT_LABEL_PX: Final = 115
MARGIN_PX: Final = 420
COMPACT_MARGIN_PX: Final = 190


def machines_chart(comparison: Comparison) -> Chart | None:
    """Every machine against all it can be held against; None where there is nothing."""
    ratios = [
        one
        for base in comparison.machines
        for other in comparison.others(base)
        for one in comparison.ratios(base, other)
    ]
    ranked = sorted(ratios, key=lambda one: one.rank, reverse=True)
    rows = [_row(comparison, one, place) for place, one in enumerate(ranked)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    if table.empty:
        return None
    chart = (
        alt.layer(*_layers(), data=table)
        # Names and figures of another choice may be longer.
        .properties(height=alt.Step(ROW_PX), autosize=alt.AutoSizeParams(type="pad", resize=True))
        .add_params(*_selects(table))
        .transform_filter("datum.machine === machine_shown")
        .transform_filter("against_shown === datum.against || against_shown === '*' + datum.kind")
        .transform_filter("study_shown === null || datum.study === study_shown")
    )
    return finish(
        chart,
        f"Speed of each variant on one of {len(comparison.machines)} machines relative to another,"
        f" with {INTERVAL}s, largest sure difference first.",
        margin=MARGIN_PX,
        compact_margin=COMPACT_MARGIN_PX,
    )


def _selects(table: pd.DataFrame) -> list[alt.Parameter]:
    """The machine, what it is held against, the study, and how many rows there are."""
    bases = list(dict.fromkeys(table["machine"]))
    against = [f"*{kind}" for kind in present(KINDS, table["kind"])]
    names = [KINDS[one[1:]] for one in against]
    others = list(dict.fromkeys(table["against"]))
    labels = [*names, *others]
    return [
        select("machine_shown", "machine", bases, table["machine"].mode()[0]),
        select("against_shown", "against", [*against, *others], against[0], labels=labels),
        select("study_shown", "study", [None, *dict.fromkeys(table["study"])], None),
        select("rows_shown", "rows", [FEW, None], FEW),
    ]


def _layers() -> list[alt.Chart]:
    across = alt.X(
        "ratio:Q",
        title=TITLE,
        scale=alt.Scale(type="log", nice=False, padding=8),
        axis=alt.Axis(format="~g", labelOverlap="greedy", values=TICKS),
    )
    colour = alt.Color(
        "verdict:N",
        scale=alt.Scale(domain=VERDICTS),
        legend=alt.Legend(
            orient="top", title=None, columnPadding=24, values=[FASTER, SLOWER, EQUAL, UNCLEAR]
        ),
    )
    tips = text_tooltip(
        *(("title", "what"), "study", "case", ("metric", "by")),
        *("machine", ("figure", "its figure"), "against"),
        *(("other", "the other figure"), ("label", "ratio"), "interval"),
    )
    base = _rows()
    ratios = base.encode(color=colour)
    intervals = ratios.transform_filter("isValid(datum.ratio_low) && isValid(datum.ratio_high)")
    one = alt.Chart(pd.DataFrame({"one": [1]})).mark_rule(style="ceiling", strokeDash=[4, 3])
    return [
        one.encode(x=alt.X("one:Q", title=TITLE)),
        intervals.mark_rule(strokeWidth=1.4).encode(
            x=alt.X("ratio_low:Q", title=TITLE), x2="ratio_high:Q"
        ),
        ratios.mark_point(filled=True, size=45, cursor="pointer", opacity=1).encode(
            x=across, href="href:N", tooltip=tips
        ),
        # Several figures of one variant share its row, which then shows their range.
        base.transform_aggregate(
            groupby=["variant"],
            count="count()",
            label="min(label)",
            least="min(ratio)",
            most="max(ratio)",
            place="min(place)",
        )
        .transform_calculate(
            shown="datum.count === 1 ? datum.label"
            " : format(datum.least, '.3~g') + ' to ' + format(datum.most, '.3~g') + '×'"
        )
        .mark_text(align="left", dx=10)
        .encode(x=alt.value("width"), text="shown:N"),
    ]


def _rows() -> alt.Chart:
    """A row a variant, those first that differ most, and as many as are chosen."""
    order = alt.EncodingSortField(field="place", op="min", order="ascending")
    axis = alt.Axis(
        labelFont=WIDE_LABELS,
        labelExpr="compact ? split(datum.label, ' / ')[1] : datum.label",
        labelLimit=alt.ExprRef(f"compact ? {COMPACT_LABEL_PX} : {LABEL_PX}"),
        domain=False,
        ticks=False,
        grid=False,
    )
    return (
        alt.Chart()
        .transform_joinaggregate(first="min(place)", groupby=["variant"])
        .transform_window(
            sort=[alt.SortField("first"), alt.SortField("variant")],
            rank="dense_rank()",
        )
        .transform_filter("rows_shown === null || datum.rank <= rows_shown")
        .encode(y=alt.Y("variant:N", sort=order, title=None, axis=axis))
    )


def _row(comparison: Comparison, one: Ratio, place: int) -> tuple[object, ...]:
    facts = comparison.studies[one.of.study]
    low, high = one.interval
    clock = facts.study.metrics[one.of.metric].label
    shown = facts.study.shown_case(one.of.variant).id
    return (
        *(one.base.name, one.other.name, "machine", one.of.study),
        f"{one.of.study} / {one.of.variant.name}{_difference(one.of.case, shown)}",
        *(one.of.variant.title, one.of.case, clock, one.verdict),
        *(one.value, low, high, place),
        *(ratio(one.value), ratio_interval(low, high)),
        *(speed(figure.payload_bytes, figure.seconds) for figure in (one.of, one.against)),
        samples_address(
            one.base.name, one.of.study, one.of.variant.name, one.of.case, one.of.metric
        ),
    )


def _difference(case: str, shown: str) -> str:
    """The keys in which a case is not the one that pages show."""
    usual = parse_case(shown)
    others = [
        f"{key}={value}" for key, value in parse_case(case).items() if usual.get(key) != value
    ]
    return f" {','.join(others)}" if others else ""
