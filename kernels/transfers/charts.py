"""This study's own charts: the crossover map, the fitted lines, and the price of memory."""

from __future__ import annotations

from dataclasses import replace

from analysis.charts.steps import steps_chart
from analysis.charts.theme import Chart
from analysis.facts.points import Context
from analysis.study import Study

from .chart_lines import fits_chart, lines_chart
from .chart_map import map_chart
from .chart_prices import break_even_chart, price_chart

ONE_PIECE = {"size", "count", "direction"}


def charts(context: Context) -> dict[str, Chart]:
    """The charts by the names that the page uses; charts with nothing to show are left out."""
    made = {
        "steps": steps_chart(Context(context.inputs, at_headline(context.study))),
        "map": map_chart(context),
        "lines": lines_chart(context),
        "fits": fits_chart(context),
        "price": price_chart(context),
        "break_even": break_even_chart(context),
    }
    return {name: chart for name, chart in made.items() if chart is not None}


def at_headline(study: Study) -> Study:
    """The study, limited to variants that move the headline's piece, and to single pieces."""
    variants = []
    for variant in study.variants:
        single = [c for c in variant.cases if set(c.values) == ONE_PIECE and c["count"] == 1]
        if study.headline in {case.id for case in single}:
            variants.append(replace(variant, cases=tuple(single)))
    return replace(study, variants=tuple(variants))
