"""Charts, drawings and widgets on pages, each with its caption."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from analysis.base.errors import FieldError, require_known
from analysis.site.charts.widgets import read_table
from analysis.site.charts.writing import ChartSummary
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.common import ALL
from analysis.site.pages.html import table
from analysis.site.pages.page import Page, macro
from analysis.site.pages.templates import macros

_FIGURES: Final = macros("figure.html")


@macro("chart")
def chart_figure(page: Page, facts: StudyFacts, name: str, caption: str) -> Markup:
    """A chart with its selects, its data and a caption.

    name: one of the common charts (`steps`, `cases`, `model`, `timeline`), or of those
        that the study's charts.py returns
    caption: one or two sentences below it
    """
    # A page may have charts of several studies with the same name.
    anchor = f"{page.study}-{name}" if page.study else name
    return _figure(page, facts.study.name, name, caption, anchor)


@macro("common_chart")
def common_figure(page: Page, name: str, caption: str) -> Markup:
    """A chart about several studies, as `chart`.

    name: `machines` or `links`
    caption: one or two sentences below it
    """
    return _figure(page, ALL, name, caption, name)


def _figure(page: Page, group: str, name: str, caption: str, anchor: str) -> Markup:
    charts = page.staged.charts[group]
    require_known("chart", name, sorted(charts))
    chart: ChartSummary | None = charts[name]
    if chart is None:
        return _FIGURES.undrawn(anchor, page.missing(f"data of chart {name}"))
    return _FIGURES.chart(
        name=anchor,
        study=group,
        path=f"charts/{group}/{name}",
        root=page.place.root,
        summary=chart,
        caption=caption,
    )


@macro("widget")
def widget_figure(page: Page, facts: StudyFacts, name: str, caption: str) -> Markup:
    """A part that the reader operates, with a caption; a table where no script runs.

    name: a widget of the study's widgets.py, and its script <name>.js
    caption: one or two sentences below it
    """
    path = f"charts/{facts.study.name}/{name}"
    found = read_table(page.docs / "charts" / facts.study.name, name)
    if found is None:
        return _FIGURES.undrawn(name, page.missing(f"data of widget {name}"))
    rows = (dict(zip(found["columns"], row, strict=True)) for row in found["rows"])
    return _FIGURES.widget(name, path, page.place.root, table(rows, numeric=()), caption)


@macro("drawing")
def drawing(facts: StudyFacts, name: str, caption: str) -> Markup:
    """A drawing of the study's operation, with a caption.

    name: `<name>.wide.svg` and `<name>.narrow.svg` beside the study's code
    caption: one or two sentences below it
    """
    files = [facts.study.folder / f"{name}.{width}.svg" for width in ("wide", "narrow")]
    if not all(file.exists() for file in files):
        raise FieldError("drawing", f"files {files[0].name} and {files[1].name}", name)
    pictures = [Markup(file.read_text(encoding="utf-8")) for file in files]
    return _FIGURES.drawing(pictures, caption)
