"""Faults of pages: gaps, captions that name what is not drawn, and two values of one figure."""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from analysis.site.charts import COMMON
from analysis.site.charts.writing import quantities
from analysis.site.check.tables import Fault
from analysis.site.facts.addresses import claim_anchor
from analysis.site.facts.inputs import Inputs
from analysis.study import Study

GAP: Final = re.compile(r'<(\w+) class="hp-gap"[^>]*>(.*?)</\1>', re.DOTALL)
"""Words in place of a part that could not be made, by `analysis.site.pages.html.gap`."""
FIGURE: Final = re.compile(r'<data value="([^"]*)" data-figure="([^"]*)">(.*?)</data>', re.DOTALL)
"""A measured figure, by `analysis.site.pages.html.figure`."""
CHART: Final = re.compile(
    r'<figure class="hp-chart" id="([^"]*)"[^>]*? data-spec="[^"]*charts/([^"]*)".*?'
    r"<figcaption>(.*?)</figcaption>",
    re.DOTALL,
)
DRAWING: Final = re.compile(
    r'<figure class="hp-picture">(.*?)<figcaption>(.*?)</figcaption>', re.DOTALL
)
PART: Final = re.compile(r'data-(?:spec|source|table)="(?:[^"]*/)?([^"/]+/[^"/]+)"')
"""A chart, form or table of a study: the file that it is made from."""
EXPLAINED: Final = ("skipped", "failed")
"""States of rows that are drawn as the reason for having no number."""
KINDS: Final = {"json": "chart", "form.json": "form", "page_table.json": "table"}
DRAWN: Final[Mapping[str, str]] = {
    r"[Dd]ashed[^.]*the models?": r'"state": "predicted"|<(path|polyline)[^>]*class="[^"]*\bdashed',
    r"[Oo]pen diamonds": r'"state": "published"',
    r"[Ww]hiskers|[Dd]ashed rules": r'"(mark|type)": "rule"|class="[^"]*\bwhisker\b',
    r"\bBand\b|[Ss]haded": r'"(mark|type)": "(rect|area|errorband)"|class="[^"]*\bband\b',
    r"[Cc]ircles|[Dd]iamonds|[Cc]rosses": r'"(mark|type)": "(point|circle)"',
    r"\bbars?\b": r'"(mark|type)": "(bar|rect)"',
    r"\bgr[ea]y\b": r"light-dark\(#6b7280|\"gr[ea]y\"",
}
"""Required text in the specification of a chart or the shapes of a drawing, by phrase of its
caption."""


def page_faults(site: Path, inputs: Inputs) -> Iterator[Fault]:
    """Faults of all pages of a finished site, and of their charts."""
    # `studies/pinning` of a page's file
    names = {path: path.relative_to(site).as_posix() for path in sorted(site.glob("**/*.html"))}
    pages = {
        name.removesuffix("index.html").rstrip("/") or "home": path.read_text()
        for path, name in names.items()
    }
    for name, text in pages.items():
        study = name.removeprefix("studies/") if name.startswith("studies/") else ""
        place = "page" if study else f"page {name}"
        yield from (Fault(place, what, "", study) for what in _of_page(site, text))
    yield from _contradictions(pages)
    used = {part for text in pages.values() for part in PART.findall(text)}
    for name in sorted({run.study for run in inputs.runs} & {*inputs.studies}):
        if (page := pages.get(f"studies/{name}")) is not None:
            lacks = [*_absent_sections(inputs.studies[name], page)]
            lacks += _unused_parts(site / "charts" / name, used)
            yield from (Fault("page", f"expected {part}, got none", "", name) for part in lacks)


def _of_page(site: Path, text: str) -> Iterator[str]:
    """Gaps of a page, and captions and menus that promise what is not drawn."""
    for gap in GAP.finditer(text):
        yield f"expected content, got {_words(gap[2])!r}"
    figures = [("a drawing", shapes, caption) for shapes, caption in DRAWING.findall(text)]
    for anchor, spec, caption in CHART.findall(text):
        document = (site / "charts" / spec).read_text()
        figures.append((anchor, document, caption))
        yield from (f"{what} in {anchor}" for what in _empty_choices(json.loads(document)))
    for where, drawn, caption in figures:
        for phrase, needed in DRAWN.items():
            named = re.search(phrase, _words(caption))
            if named and not re.search(needed, drawn):
                yield f"expected {named[0]!r} to be drawn in {where}, got none"


def _contradictions(pages: Mapping[str, str]) -> Iterator[Fault]:
    values: dict[str, dict[str, str]] = defaultdict(dict)
    for name, text in pages.items():
        for value, key, _ in FIGURE.findall(text):
            values[key].setdefault(value, name)
    for key, places in values.items():
        if len(places) > 1:
            shown = " and ".join(f"{value} on {name}" for value, name in places.items())
            yield Fault(f"figure {key}", f"expected one value, got {shown}")


def _absent_sections(study: Study, text: str) -> Iterator[str]:
    """Steps and claims that the page of a measured study lacks."""
    wanted = {one.name: f"a section of {one.name}" for one in study.with_role("step", "beyond")}
    wanted |= {claim_anchor(study.name, claim.id): f"claim {claim.id}" for claim in study.claims}
    known = {*re.findall(r'\bid="([^"]*)"', text)}
    return (part for anchor, part in wanted.items() if anchor not in known)


def _unused_parts(charts: Path, used: Collection[str]) -> Iterator[str]:
    """Charts, forms and tables that only this study has, and that are not among those `used` on
    pages. Which of the common charts a page has is up to its author."""
    for path in sorted(charts.iterdir()):
        name, _, kind = path.name.partition(".")
        if kind in KINDS and name not in COMMON and f"{charts.name}/{path.name}" not in used:
            yield f"{KINDS[kind]} {name}"


def _empty_choices(document: Mapping[str, Any]) -> Iterator[str]:
    """Options of a chart's menus without a number to draw, or the reason for having none. The stage
    of charts has checked what they show at first."""
    numbers = quantities({**document, "data": None})
    rows = [
        row
        for row in document["data"]["values"]
        if row.get("state") in EXPLAINED or any(row.get(name) is not None for name in numbers)
    ]
    for menu in document["usermeta"]["selects"] if numbers else ():
        for option in menu["options"]:
            if all(row.get(menu["column"]) != option for row in rows):
                what = f"expected marks for {menu['column']} = {option}, which can be chosen"
                yield f"{what}, got none"


def _words(html: str) -> str:
    """The words of `html` on one line."""
    return " ".join(re.sub(r"<[^>]+>", "", html).split())
