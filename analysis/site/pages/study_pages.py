"""The folded end of a study's page, and the tables of journeys and studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from analysis.base.quantities import percent, ratio, runs_phrase, speed
from analysis.site.facts.basis import is_headline
from analysis.site.facts.journeys import journey_of
from analysis.site.pages.html import figure, link, table
from analysis.site.pages.ledger import claims
from analysis.site.pages.navigation import JOURNEYS
from analysis.site.pages.page import MACROS, Page, macro
from analysis.site.pages.source import source
from analysis.site.pages.tables import missing, published

SAMPLES: Final = (
    "[Data](../data.md) lists the samples of every variant, with commit, compiler and command."
)


@macro()
def evidence(
    page: Page,
    caption: str = "",
    charts: Mapping[str, str] | None = None,
    tables: Sequence[str] = (),
) -> str:
    """The folded end of a study's page: every claim with its verdict, charts and tables that the
    text does not show, every variant's source and figures, and missing results.

    caption: axes of the chart of all cases; without it, there is no such chart
    charts: captions by names of charts
    tables: names as of `table`
    """
    drawn = {**(charts or {}), **({"cases": caption} if caption else {})}
    shown = [
        *(MACROS["table"](page, name) for name in tables),
        *(MACROS["chart"](page, name, text) for name, text in drawn.items()),
    ]
    parts = {
        "Claims and verdicts {: #claims .fold }": claims(page),
        "The printed figures beside ours {: #as-published .fold }": published(page),
        "More charts and tables {: #charts-and-tables .fold }": "\n\n".join(shown),
        "Source, machine code and figures of each variant {: #sources .fold }": source(page),
        "Missing results {: #missing-results .fold }": missing(page.facts),
        "Samples {: .fold }": SAMPLES,
    }
    return "\n\n".join(f"## {title}\n\n{text}" for title, text in parts.items() if text)


@macro()
def journeys(page: Page, *names: str) -> Markup:
    """A line for each journey: its first and its best step, the gain, and the share of the limit.

    names: some of the studies; all journeys if omitted
    """
    rows = []
    for name in names or page.staged.groups.get(JOURNEYS, ()):
        facts = page.staged.studies[name]
        if (journey := journey_of(facts)) is None:
            continue
        first, last = journey.first, journey.last
        shown = [
            figure(
                speed(
                    facts.study.shown_case(step.variant).payload_bytes * facts.figures.are_rates,
                    step.time.median,
                ),
                step.time,
            )
            for step in (first, last)
        ]
        row = facts.figures.ratio(journey.machine, last.variant, first.variant, journey.metric)
        few = min(first.time, last.time, key=lambda time: time.runs)
        rows.append(
            {
                "study": link(page.study_address(name), facts.study.title),
                "first step": shown[0],
                "best step": shown[1],
                "gain": figure(ratio(row.ratio), row) if row and is_headline(row) else "",
                "of the limit": "" if last.share is None else percent(last.share),
                "by": facts.study.metrics[journey.metric].clock,
                "on": f"{page.inputs.called(journey.machine)}, {runs_phrase(few.runs, few.hosts)}",
            }
        )
    return table(rows)
