"""Charts of this study: speed relative to PyTorch's allocator, the allocator's share of a step, and
reserved memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import altair as alt

from analysis.api.charts import (
    Chart,
    StudyFacts,
    dot_chart,
    even_rule,
    fresh_figures,
    present,
    si_axis,
)
from analysis.api.quantities import percent, quantity, ratio

SITUATIONS: Final = ("graphs_2", "graphs_10", "out_of_memory")
"""Cases whose memory hardly depends on the allocator."""


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """`speed`: relative to PyTorch's allocator; `share`: time in the allocator over host time;
    `memory`: peak of reserved bytes. Rows are cases, colours are allocators."""
    x, from_one = alt.X("median:Q"), alt.Scale(zero=False)
    speed = x.title("speed relative to PyTorch's allocator").scale(from_one)
    speed = speed.axis(alt.Axis(format=".2f", tickMinStep=0.01))
    share = x.title("share of host time").axis(alt.Axis(format="%"))
    memory = x.title("peak reserved").axis(si_axis("B"))
    return {
        "speed": dots(facts, "relative_speed", speed, ratio, through=[even_rule("x")]),
        "share": dots(facts, "allocation_share", share, percent),
        "memory": dots(facts, "reserved", memory, partial(quantity, unit="B"), SITUATIONS),
    }


def dots(
    facts: StudyFacts,
    metric: str,
    x: alt.X,
    written: Callable[[float], str],
    without: tuple[str, ...] = (),
    through: Any = (),
) -> Chart | None:
    """A row a case, a dot with its interval for each allocator."""
    titles = [variant.title for variant in facts.study.subjects]
    rows = fresh_figures(facts, metric)
    rows = rows[rows["title"].isin(titles) & ~rows["work"].isin(without)]
    case = rows["work"].astype(str).str.replace("_", " ")
    return dot_chart(
        rows.assign(row=case, label=rows["median"].map(written)),
        x,
        "row",
        [],
        f"{facts.study.metrics[metric].label}, by case and allocator.",
        {"title": "allocator", "work": "case", "label": "median", "interval": "interval"},
        by="title",
        names=present(titles, rows["title"]),
        interval=("ci_low", "ci_high"),
        through=through,
    )
