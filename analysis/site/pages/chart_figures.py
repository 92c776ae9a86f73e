"""A study's chart on its page: selects, the drawing, its caption, and its figures as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup

from analysis.base.errors import require_known
from analysis.site.charts.still import Still
from analysis.site.charts.writing import ChartSummary
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import NO_HTML, link
from analysis.site.pages.page import Page
from analysis.site.pages.sentences import NOTHING
from analysis.site.pages.staging import ALL

_FIGURE: Final = Markup(
    '<figure class="hp-chart" id="chart-{name}" data-study="{study}" data-chart="{name}"'
    ' data-spec="{address}.vg.json" data-root="{root}">'
    '<form class="hp-controls" aria-label="What the chart shows">{controls}</form>'
    '<p class="hp-note" role="status"></p>'
    '<div class="hp-scroll" tabindex="0" role="group" aria-label="Chart: {name}">'
    '<div class="hp-view" role="img" aria-label="{description}"'
    ' aria-describedby="chart-{name}-text">{pictures}</div></div>'
    "<figcaption>{caption}</figcaption>"
    '<p class="hp-text" id="chart-{name}-text">{text}</p>'
    '<div class="hp-tools"></div>'
    '<details class="hp-data"><summary>Data</summary><p>{download}</p></details>'
    "</figure>"
)
_PICTURE: Final = Markup(
    '<div class="hp-still hp-{column}" aria-hidden="true" data-search-exclude>{drawn}</div>'
)
# As Vega makes it.
_SELECT: Final = Markup(
    '<div class="vega-bind hp-still"><label><span class="vega-bind-name">{name}</span>'
    "<select disabled>{options}</select></label></div>"
)
_OPTION: Final = Markup("<option{}>{}</option>")


def chart_figure(page: Page, facts: StudyFacts, name: str, caption: str) -> str | Markup:
    """The chart `name` of the study.

    assets/charts.js draws it when it comes into view; the first chart of a page is in it as a
    picture, too, to be seen before any script has run. FieldError where the study has no such
    chart.
    """
    charts = page.staged.charts[facts.study.name]
    require_known("chart", name, sorted(charts))
    if charts[name] is None and not facts.machines:
        return _undrawn(name, NOTHING)
    return _figure(page, charts[name], facts.study.name, name, caption)


def common_figure(page: Page, name: str, caption: str) -> str | Markup:
    """The chart `name` of those that are of no one study; else as `chart_figure`."""
    charts = page.staged.charts[ALL]
    require_known("chart", name, sorted(charts))
    return _figure(page, charts[name], ALL, name, caption)


def _undrawn(name: str, reason: str) -> Markup:
    """What stands in place of a chart; links lead to it as to the chart."""
    return Markup('<p id="chart-{}">{}</p>').format(name, reason)


def _figure(
    page: Page, chart: ChartSummary | None, group: str, name: str, caption: str
) -> str | Markup:
    if chart is None:
        return _undrawn(name, "Nothing to draw yet.")
    path = f"charts/{group}/{name}"
    controls = pictures = NO_HTML
    if page.is_first_chart(f"{group}/{name}"):
        still = Still(page.docs / f"{path}.vg.json")
        controls = NO_HTML.join(map(_select, still.choices))
        drawn = chart.pictures or still.pictures()
        pictures = NO_HTML.join(
            _PICTURE.format(column=column, drawn=Markup(svg)) for column, svg in drawn.items()
        )
    return _FIGURE.format(
        name=name,
        study=group,
        address=page.root + path,
        root=page.root,
        description=chart.description,
        controls=controls,
        pictures=pictures,
        caption=caption,
        text=chart.text,
        download=link(f"{page.root}{path}.csv", "All rows as CSV"),
    )


def _select(signal: Mapping[str, Any]) -> Markup:
    """A signal that a select sets; it can be used once the chart is drawn."""
    bind, chosen = signal["bind"], signal["value"]
    options = (
        _OPTION.format(Markup(" selected" if value == chosen else ""), label)
        for value, label in zip(bind["options"], bind["labels"], strict=True)
    )
    return _SELECT.format(name=bind["name"], options=NO_HTML.join(options))
