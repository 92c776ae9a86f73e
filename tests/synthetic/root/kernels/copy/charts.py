"""A chart specific to this study."""

from __future__ import annotations

import altair as alt

from analysis.api.charts import Chart, StudyFacts


def charts(facts: StudyFacts) -> dict[str, Chart]:
    """One dot a row."""
    dots = alt.Chart(facts.points, description="Every time.").mark_point()
    shown = dots.encode(x="seconds", y="variant").add_params(alt.param(name="p", value=1))
    return {"dots": shown}
