"""A chart specific to this study."""

from __future__ import annotations

import altair as alt

from analysis.api.charts import BASIS_COLUMNS, Chart, StudyFacts


def charts(facts: StudyFacts) -> dict[str, Chart | None]:
    """One dot a row."""
    if facts.points.empty:
        return {"dots": None}
    dots = alt.Chart().mark_point().encode(x="seconds:Q", y="variant:N")
    return {"dots": Chart(dots, facts.points, "Every time.", BASIS_COLUMNS)}
