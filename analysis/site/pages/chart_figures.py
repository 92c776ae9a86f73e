"""A study's chart on its page: selects, the drawing, its caption, and its figures as text."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from analysis.base.errors import require_known
from analysis.site.charts.widgets import read_table
from analysis.site.charts.writing import ChartSummary
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.common import ALL
from analysis.site.pages.html import gap, table
from analysis.site.pages.page import Page, macro
from analysis.site.pages.sentences import NOTHING
from analysis.site.pages.templates import macros

_FIGURES: Final = macros("figure.html")


@macro("chart")
def chart_figure(page: Page, facts: StudyFacts, name: str, caption: str) -> str | Markup:
    """A chart with its selects, its data and a caption.

    name: one of the common charts (`steps`, `cases`, `model`, `agreement`, `timeline`), or of those
        that the study's charts.py returns
    caption: one or two sentences below it
    """
    charts = page.staged.charts[facts.study.name]
    require_known("chart", name, sorted(charts))
    # A page may have charts of several studies with the same name.
    anchor = f"{page.study}-{name}" if page.study else name
    if charts[name] is None and not facts.machines:
        return _FIGURES.undrawn(anchor, NOTHING)
    return _figure(page, charts[name], facts.study.name, name, caption, anchor)


@macro("common_chart")
def common_figure(page: Page, name: str, caption: str) -> str | Markup:
    """A chart about several studies, as `chart`.

    name: `machines` or `links`
    caption: one or two sentences below it
    """
    charts = page.staged.charts[ALL]
    require_known("chart", name, sorted(charts))
    return _figure(page, charts[name], ALL, name, caption, name)


@macro("widget")
def widget_figure(page: Page, facts: StudyFacts, name: str, caption: str) -> str | Markup:
    """A part that the reader operates, with a caption; a table where no script runs.

    name: a widget of the study's widgets.py, and its script <name>.js
    caption: one or two sentences below it
    """
    path = f"charts/{facts.study.name}/{name}"
    found = read_table(page.docs / "charts" / facts.study.name, name)
    if found is None:
        return _FIGURES.undrawn(name, gap("Nothing to show yet."))
    shown = table(found["columns"], found["rows"])
    return _FIGURES.widget(name, path, page.root, shown, caption)


def _figure(
    page: Page, chart: ChartSummary | None, group: str, name: str, caption: str, anchor: str
) -> str | Markup:
    if chart is None:
        return _FIGURES.undrawn(anchor, gap("Nothing to draw yet."))
    return _FIGURES.chart(
        name=anchor,
        study=group,
        path=f"charts/{group}/{name}",
        root=page.root,
        summary=chart,
        caption=caption,
    )
