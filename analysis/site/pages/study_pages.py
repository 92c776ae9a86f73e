"""The folded end of a study's page, and the tables of journeys and studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from analysis.base.quantities import percent, ratio, runs_phrase, speed
from analysis.site.facts.basis import is_headline
from analysis.site.facts.journeys import journey_of
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.chart_figures import chart_figure
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
    facts: StudyFacts,
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
        *(MACROS["table"](page, name, study=facts.study.name) for name in tables),
        *(chart_figure(page, facts, name, text) for name, text in drawn.items()),
    ]
    parts = {
        "Claims and verdicts {: #claims .fold }": claims(facts, page.place),
        "The printed figures beside ours {: #as-published .fold }": published(facts),
        "More charts and tables {: #charts-and-tables .fold }": "\n\n".join(shown),
        "Source, machine code and figures of each variant {: #sources .fold }": source(
            facts, page.place
        ),
        "Missing results {: #missing-results .fold }": missing(facts),
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
        ends = [journey.first, journey.last]
        times = [step.time for step in ends]
        payloads = [facts.study.shown_case(step.variant).payload_bytes for step in ends]
        first, last = (
            figure(speed(payload * facts.figures.are_rates, time.median), time)
            for payload, time in zip(payloads, times, strict=True)
        )
        variants = journey.last.variant, journey.first.variant
        row = facts.figures.ratio(journey.machine, *variants, journey.metric)
        share, few = journey.last.share, min(times, key=lambda time: time.runs)
        rows.append(
            {
                "study": link(page.study_address(name), facts.study.title),
                "first step": first,
                "best step": last,
                "gain": figure(ratio(row.ratio), row) if row and is_headline(row) else "",
                "of the limit": "" if share is None else percent(share),
                "by": facts.study.metrics[journey.metric].clock,
                "on": f"{facts.inputs.called(journey.machine)}, {runs_phrase(few.runs, few.hosts)}",
            }
        )
    return table(rows)


@macro()
def other_studies(page: Page) -> Markup:
    """The questions of all studies outside the journeys."""
    return table(
        {
            "group": title,
            "study": link(page.study_address(name), page.staged.studies[name].study.title),
            "question": " ".join(page.staged.studies[name].study.question.split()),
        }
        for title, names in page.staged.groups.items()
        for name in names
        if title != JOURNEYS
    )
