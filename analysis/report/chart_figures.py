"""A study's chart on its page: selects, the drawing, its caption, and its figures as text."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from analysis.charts.writing import InWords
from analysis.errors import require_known
from analysis.facts.study_facts import StudyFacts
from analysis.report.html import link
from analysis.report.sentences import NOTHING
from analysis.report.staging import ALL, Staged

_FIGURE: Final = Markup(
    '<figure class="hp-chart" id="chart-{name}" data-study="{study}" data-chart="{name}"'
    ' data-spec="{address}.vg.json" data-root="{root}">'
    '<form class="hp-controls" aria-label="What the chart shows"></form>'
    '<p class="hp-note" role="status"></p>'
    '<div class="hp-scroll" tabindex="0" role="group" aria-label="Chart: {name}">'
    '<div class="hp-view" role="img" aria-label="{description}"'
    ' aria-describedby="chart-{name}-text"></div></div>'
    "<figcaption>{caption}</figcaption>"
    '<p class="hp-text" id="chart-{name}-text">{text}</p>'
    '<details class="hp-data"><summary>Data</summary><p>{download}</p></details>'
    "</figure>"
)


def chart_figure(
    staged: Staged, facts: StudyFacts, name: str, caption: str, root: str
) -> str | Markup:
    """The chart `name` of the study; `root` is the site's as seen from the page.

    assets/charts.js draws it when it comes into view. FieldError where the study has no such chart.
    """
    charts = staged.charts[facts.study.name]
    require_known("chart", name, sorted(charts))
    if charts[name] is None and not facts.machines:
        return NOTHING
    return _figure(charts[name], facts.study.name, name, caption, root)


def common_figure(staged: Staged, name: str, caption: str, root: str) -> str | Markup:
    """The chart `name` of those that are of no one study; else as `chart_figure`."""
    charts = staged.charts[ALL]
    require_known("chart", name, sorted(charts))
    return _figure(charts[name], ALL, name, caption, root)


def _figure(chart: InWords | None, group: str, name: str, caption: str, root: str) -> str | Markup:
    if chart is None:
        return "Nothing to draw yet."
    address = f"{root}charts/{group}/{name}"
    return _FIGURE.format(
        name=name,
        study=group,
        address=address,
        root=root,
        description=chart.description,
        caption=caption,
        text=chart.text,
        download=link(f"{address}.csv", "All rows as CSV"),
    )
