"""Charts and drawings on pages, each with its caption."""

import json
from collections.abc import Mapping

from markupsafe import Markup

from analysis.base.errors import FieldError, require_known
from analysis.site.charts.theme import CONFIGURATION
from analysis.site.pages.html import PARTS
from analysis.site.pages.page import Page, macro
from analysis.site.pages.staging import ALL
from analysis.study import parse_case


@macro
def chart(page: Page, name: str, caption: str) -> Markup:
    """A chart with its selects, its data and a caption.

    name: one of the common charts (`steps`, `cases`, `model`, `timeline`), or of those that the
        study's charts.py returns; with `study='all'`, `machines`
    caption: one or two sentences below it
    """
    # A page may have charts of several studies with the same name.
    anchor = f"{page.study}-{name}" if page.study else name
    group = ALL if page.study == ALL else page.facts.study.name
    charts = page.staged.charts[group]
    require_known("chart", name, sorted(charts))
    summary = charts[name]
    if summary is None:
        raise page.missing(f"data of chart {name}")
    path = f"charts/{group}/{name}"
    return PARTS.chart(anchor, group, path, page.root, summary, caption)


@macro
def drawing(page: Page, name: str, caption: str) -> Markup:
    """A drawing of the study's operation, with a caption.

    name: `<name>.wide.svg` and `<name>.narrow.svg` beside the study's code
    caption: one or two sentences below it
    """
    folder = page.facts.study.folder
    files = [folder / f"{name}.{width}.svg" for width in ("wide", "narrow")]
    if not all(file.exists() for file in files):
        raise FieldError("drawing", f"files {files[0].name} and {files[1].name}", name)
    return PARTS.drawing([Markup(file.read_text(encoding="utf-8")) for file in files], caption)


@macro
def explorer(page: Page, name: str, start: Mapping[str, str]) -> Markup:
    """Selects and a chart of any metric over any key of any study, which a script fills.

    name: a chart of the study that is shown until the reader touches it
    start: what the selects begin with: `metric`, `as` (`figure` or `rate`), the keys `x` and
        `colour`, and values of other keys that differ from the headline case
    """
    study = page.facts.study
    about = {
        name: {
            "title": facts.study.title,
            "headline": parse_case(facts.study.headline),
            "metrics": {key: metric.label for key, metric in facts.study.metrics.items()},
        }
        for name, facts in page.staged.studies.items()
        if not facts.summary.empty
    }
    # All values of the axis and of the colours.
    every = dict.fromkeys((start["x"], start["colour"]))
    begin = {**parse_case(study.headline), "machine": page.machine, **start, **every}
    given = (about, page.inputs.machine_names, {"study": study.name, **begin}, CONFIGURATION)
    summary, path = page.staged.charts[study.name][name], f"charts/{study.name}/{name}"
    return PARTS.explorer(*map(json.dumps, given), page.root, path, summary)
