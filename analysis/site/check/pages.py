"""Faults of pages: gaps, captions that name what is not drawn, and two values of one figure."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from analysis.site.charts import COMMON
from analysis.site.check.faults import Fault
from analysis.site.facts.addresses import claim_anchor
from analysis.site.facts.inputs import Inputs
from analysis.study import Study

GAP: Final = re.compile(r'<(\w+) class="hp-gap"[^>]*>(.*?)</\1>', re.DOTALL)
"""Words in place of a part that could not be made, by `analysis.site.pages.html.gap`."""
FIGURE: Final = re.compile(r'<data value="([^"]*)" data-figure="([^"]*)">(.*?)</data>', re.DOTALL)
"""A measured figure, by `analysis.site.pages.html.figure`."""
CHART: Final = re.compile(
    r'<figure class="hp-chart" id="([^"]*)"[^>]*? data-spec="([^"]*)\.vg\.json".*?'
    r"<figcaption>(.*?)</figcaption>",
    re.DOTALL,
)
DRAWING: Final = re.compile(
    r'<figure class="hp-picture">(.*?)<figcaption>(.*?)</figcaption>', re.DOTALL
)
PART: Final = re.compile(r'data-(?:spec|source|table)="(?:[^"]*/)?([^"/]+/[^"/]+)"')
"""A chart, widget or table of a study: the file that it is made from."""
KINDS: Final = {"vg.json": "chart", "widget.json": "widget", "page_table.json": "table"}
STATE: Final = "state: "
"""Beginning of a requirement on the rows' column `state`; others are types of marks."""
OF_CHARTS: Final[Mapping[str, tuple[str, ...]]] = {
    r"[Dd]ashed: the model": (f"{STATE}predicted",),
    r"[Oo]pen diamonds": (f"{STATE}published",),
    r"[Ww]hiskers": ("rule",),
    r"[Dd]ashed rules": ("rule",),
    r"\bBand\b": ("rect", "area"),
    r"[Cc]ircles|[Dd]iamonds|[Cc]rosses": ("symbol",),
    r"\bbars?\b": ("rect",),
}
"""Requirements on a chart, of which one must be met, by phrase of its caption."""
OF_DRAWINGS: Final[Mapping[str, str]] = {
    r"[Ss]haded": r'class="[^"]*\bband\b',
    r"[Dd]ashed[^.]*the model": r'<(path|polyline)[^>]*class="[^"]*\bdashed\b',
    r"[Ww]hiskers": r'class="[^"]*\bwhisker\b',
}
"""Required text in the shapes of a drawing, by phrase of its caption."""


def page_faults(site: Path, inputs: Inputs) -> Iterator[Fault]:
    """Faults of all pages of a finished site."""
    pages = {_name(path, site): path.read_text() for path in sorted(site.glob("**/*.html"))}
    yield from _gaps_and_captions(site, pages)
    yield from _contradictions(pages)
    used = {part for text in pages.values() for part in PART.findall(text)}
    measured = {run.study for run in inputs.runs} & {*inputs.studies}
    for name in sorted(measured):
        page = pages.get(f"studies/{name}")
        if page is not None:
            yield from _absent_sections(inputs.studies[name], page)
            yield from _unused_parts(site / "charts" / name, used)


def _name(path: Path, site: Path) -> str:
    """`studies/pinning` of a page's file."""
    return path.relative_to(site).as_posix().removesuffix("index.html").rstrip("/") or "home"


def _gaps_and_captions(site: Path, pages: Mapping[str, str]) -> Iterator[Fault]:
    for name, text in pages.items():
        for found in GAP.finditer(text):
            yield Fault(f"page {name}", f"expected content, got {_words(found[2])!r}")
        yield from _wrong_captions(f"page {name}", text, site)


def _contradictions(pages: Mapping[str, str]) -> Iterator[Fault]:
    values: dict[str, dict[str, str]] = defaultdict(dict)
    for name, text in pages.items():
        for value, key, _ in FIGURE.findall(text):
            values[key].setdefault(value, name)
    for key, found in values.items():
        if len(found) > 1:
            shown = " and ".join(f"{value} on {name}" for value, name in found.items())
            yield Fault(f"figure {key}", f"expected one value, got {shown}")


def _absent_sections(study: Study, text: str) -> Iterator[Fault]:
    """Absent parts that every page of a measured study has: its steps and claims."""
    wanted = {name.name: f"a section of {name.name}" for name in study.with_role("step", "beyond")}
    wanted |= {claim_anchor(study.name, claim.id): f"claim {claim.id}" for claim in study.claims}
    known = {*re.findall(r'\bid="([^"]*)"', text)}
    for anchor, part in wanted.items():
        if anchor not in known:
            yield Fault(f"page studies/{study.name}", f"expected {part}, got none")


def _unused_parts(charts: Path, used: Collection[str]) -> Iterator[Fault]:
    """Charts, widgets and tables that only this study has, and that are not among those `used` on
    pages. Which of the common charts a page has is up to its author."""
    for path in sorted(charts.iterdir()):
        name, _, kind = path.name.partition(".")
        if kind in KINDS and name not in COMMON and f"{charts.name}/{path.name}" not in used:
            yield Fault(f"page studies/{charts.name}", f"expected {KINDS[kind]} {name}, got none")


def _wrong_captions(where: str, text: str, site: Path) -> Iterator[Fault]:
    """Captions that name a mark which is not drawn."""
    for anchor, spec, caption in CHART.findall(text):
        path = site / "charts" / spec.partition("charts/")[2]
        document = json.loads(path.with_name(f"{path.name}.json").read_text())
        known = {*document["usermeta"]["marks"], *_states(path)}
        for phrase, needed in OF_CHARTS.items():
            found = re.search(phrase, _words(caption))
            if found and known.isdisjoint(needed):
                yield Fault(f"{where}, {anchor}", f"expected {found[0]!r} to be drawn, got none")
    for shapes, caption in DRAWING.findall(text):
        for phrase, needed_shape in OF_DRAWINGS.items():
            found = re.search(phrase, _words(caption))
            if found and not re.search(needed_shape, shapes):
                yield Fault(f"{where}, drawing", f"expected {found[0]!r} to be drawn, got none")


def _states(path: Path) -> set[str]:
    """The values of the column `state` of a chart's data, each after STATE."""
    import pandas as pd

    data = pd.read_csv(path.with_name(f"{path.name}.csv"), dtype=str)
    states: Any = data["state"].dropna().unique() if "state" in data else ()
    return {f"{STATE}{one}" for one in states}


def _words(html: str) -> str:
    """The words of `html` on one line."""
    return " ".join(re.sub(r"<[^>]+>", "", html).split())
