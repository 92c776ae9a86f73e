"""Charts of this study: the crossover map, the fitted lines, and the price of memory."""

from __future__ import annotations

from dataclasses import replace

from analysis.api.charts import Chart, StudyFacts, steps_chart
from analysis.api.study import Study

from .chart_lines import fits_chart, lines_chart
from .chart_map import map_chart
from .chart_prices import break_even_chart, price_chart

ONE_PIECE = {"size", "count", "direction"}


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """Charts by their names on the page; None without data."""
    return {
        "steps": steps_chart(replace(facts, study=at_headline(facts.study))),
        "map": map_chart(facts),
        "lines": lines_chart(facts),
        "fits": fits_chart(facts),
        "price": price_chart(facts),
        "break_even": break_even_chart(facts),
    }


def at_headline(study: Study) -> Study:
    """The study reduced to variants that move the headline's piece, and to cases of one piece."""
    variants = []
    for variant in study.variants:
        single = [c for c in variant.cases if set(c.values) == ONE_PIECE and c["count"] == 1]
        if study.headline in {case.id for case in single}:
            variants.append(replace(variant, cases=tuple(single)))
    return replace(study, variants=tuple(variants))
