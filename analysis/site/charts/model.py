"""Measured times against the link model's: how much longer than predicted, over the rate."""

import altair as alt

from analysis.base.quantities import quantity, signed_percent
from analysis.results.model.fit import JUDGED_WITHIN, LINK
from analysis.results.model.terms import TERMS
from analysis.site.charts.theme import Chart, band, colour, log_scale, opacity_if, present
from analysis.site.facts.addresses import samples_addresses
from analysis.site.facts.study_facts import StudyFacts

COLUMNS = {
    "variant": "variant",
    "case": "case",
    "binding": "bound by",
    "limit": "predicted",
    "time": "measured",
    "difference": "measured vs. predicted",
    "use": "use",
}


def model_chart(facts: StudyFacts) -> Chart | None:
    """A point a variant and case, in the colour of what binds it, faint if it is not judged; None
    where nothing is predicted."""
    table = facts.predictions
    if table.empty:
        return None
    pairs = zip(table["variant"], table["case"], strict=True)
    table = table.assign(
        rate=[facts.study.payloads[pair] for pair in pairs] / table["predicted"] / 1e9,
        judged=table["judged"].astype(int),
        limit=[quantity(value, "s") for value in table["predicted"]],
        time=[quantity(value, "s") for value in table["measured"]],
        difference=table["residual"].map(signed_percent),
        href=samples_addresses(table),
    )
    within = max(JUDGED_WITHIN.get(term, 0) for term in (LINK, *table["binding"]))
    legend = alt.Legend(title="bound by")
    points = alt.Chart().mark_point(size=45)
    points = points.encode(
        x=alt.X("rate:Q", title="predicted payload rate, GB/s", scale=log_scale()),
        y=alt.Y("residual:Q", title="measured vs. predicted", axis=alt.Axis(format="+.0%")),
        color=colour("binding", present(TERMS, table["binding"]), legend),
        opacity=opacity_if("datum.judged === 1", 1, 0.35),
    )
    description = "measured over predicted time, over the predicted rate."
    drawing = alt.layer(band("y", -within, within), points)
    return Chart(drawing, table, description, COLUMNS)
