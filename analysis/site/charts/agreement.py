"""Two entries that are one program: what the method says of differences that cannot be there."""

from __future__ import annotations

import altair as alt
import pandas as pd

from analysis.base.quantities import INTERVAL, ratio, ratio_interval
from analysis.base.statistics import SAME_WITHIN
from analysis.site.charts.rows import MARK_PX, row_chart
from analysis.site.charts.theme import Chart, Select, colour
from analysis.site.facts.addresses import samples_addresses
from analysis.site.facts.study_facts import StudyFacts

CALLED = {"same": "same", "faster": "different", "slower": "different", "unclear": "unclear"}


def agreement_chart(facts: StudyFacts) -> Chart | None:
    """Ratios between repeats of one program in this study; None where there are none."""
    table = facts.repeats
    if table.empty:
        return None
    ends = table[["ci_low", "ci_high"]].to_numpy(dtype=float)
    table = table.assign(
        clock=[facts.study.metrics[metric].label for metric in table["metric"]],
        called=table["verdict"].map(CALLED),
        short=table["ratio"].map(ratio),
        interval=[ratio_interval(*pair) for pair in ends],
        href=samples_addresses(table),
    )
    cases = dict.fromkeys(case.id for variant in facts.study.variants for case in variant.cases)
    names = [*dict.fromkeys(CALLED.values())]
    x = alt.X("ratio:Q", title="ratio of times", scale=alt.Scale(zero=False))
    base = alt.Chart().encode(x=x, color=colour("called", names, alt.Legend(title=None)))
    band = alt.Chart(pd.DataFrame({"low": [1 - SAME_WITHIN], "high": [1 + SAME_WITHIN]}))
    drawing = row_chart(
        "case",
        [*cases],
        base.mark_rule(strokeWidth=1.5, yOffset=MARK_PX).encode(x="ci_low:Q", x2="ci_high:Q"),
        base.mark_point(filled=True, size=40, yOffset=MARK_PX),
        through=[band.mark_rect(style="band", opacity=0.13).encode(x="low:Q", x2="high:Q")],
    )
    columns = {
        "variant": "variant",
        "against": "against",
        "case": "case",
        "clock": "clock",
        "short": "ratio",
        "interval": INTERVAL,
        "verdict": "called",
    }
    description = (
        f"{facts.study.title}: ratios of times between two entries of one program, each with its"
        f" {INTERVAL}; the correct ratio is 1."
    )
    return Chart(drawing, table, description, columns, [Select("clock", "clock")])
