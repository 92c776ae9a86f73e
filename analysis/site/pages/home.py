"""Parts of the home page: the findings, a card per journey, and all other studies."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from markupsafe import Markup

from analysis.base.quantities import (
    is_at_limit,
    listing,
    percent,
    ratio,
    runs_phrase,
    speed,
    speed_phrase,
    with_interval,
)
from analysis.site.facts.addresses import claim_anchor
from analysis.site.facts.basis import FEW, is_headline
from analysis.site.facts.findings import ClaimResult, findings
from analysis.site.facts.journeys import Journey, Step, journey_of
from analysis.site.facts.points import shortest_time
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.findings import finding_line
from analysis.site.pages.html import figure, link, listed, paragraph
from analysis.site.pages.pictures import Mark, columns, times
from analysis.site.pages.sentences import NOTHING
from analysis.site.pages.templates import macros
from analysis.study.claims.claim import Finding

Address = Callable[[str], str]
"""Relative address of a study's page; empty for a study without a page."""

_CARDS: Final = macros("card.html")
MAX_FINDINGS: Final = 5


def cards(studies: Iterable[StudyFacts], address: Address) -> Markup:
    """One card per measured study: its steps as a picture, their gain, and their distance from the
    limit."""
    shown = list(studies)
    # Before any study has results, the cards say so; later, those without are left out.
    shown = [facts for facts in shown if facts.machines] or shown
    return _CARDS.cards([_card(facts, address(facts.study.name)) for facts in shown])


def _card(facts: StudyFacts, address: str) -> Markup:
    journey = journey_of(facts)
    if journey is None:
        content = paragraph(_unmeasured(facts) if facts.machines else NOTHING)
    else:
        content = _journey(facts, journey)
    return _CARDS.card(facts.study.title, address, content)


def _journey(facts: StudyFacts, journey: Journey) -> Markup:
    """From the first step to the last: as a picture, figures and shares of the limit."""
    steps = {step.variant.name: step for step in (journey.first, journey.last)}.values()
    return _CARDS.journey(
        picture=_picture(facts, journey),
        speeds=[figure(_speed(facts, step), step.time) for step in steps if step.time],
        gain=_gain_of(facts, journey) if len(steps) > 1 else "",
        shares=_shares(journey),
        standing=_standing(facts, journey),
    )


def _unmeasured(facts: StudyFacts) -> str:
    machines = listing([facts.inputs.called(machine) for machine in facts.machines])
    contenders = [
        (machine, step) for machine in facts.machines for step in facts.ranking.contenders(machine)
    ]
    times = [facts.ranking.time(machine, step) for machine, step in contenders]
    if times and not any(row is not None and is_headline(row) for row in times):
        return f"Measured on {machines}, but every step in {FEW}: no figure is shown here yet."
    return f"No step has a figure yet: all were skipped or failed on {machines}."


def _picture(facts: StudyFacts, journey: Journey) -> Markup:
    """Rates as columns from zero, or times as dots on a logarithmic axis."""
    ends = (journey.first, journey.last)
    marks = [_mark(facts, step, is_end=step in ends) for step in journey.steps]
    summary = "; ".join(mark.title for mark in marks)
    if facts.figures.are_rates:
        return columns(marks, _limit_rate(facts, journey), f"Rates, from zero: {summary}")
    limit = journey.limit.variant if journey.limit else None
    row = facts.figures.metric(journey.machine, limit, journey.metric) if limit else None
    return times(marks, row.median if row else None, f"Times, logarithmic: {summary}")


def _mark(facts: StudyFacts, step: Step, *, is_end: bool) -> Mark:
    row = step.time
    if row is None:
        return Mark(*(math.nan,) * 3, "", f"{step.variant.name}: no figure")
    kind = ("stale" if row.stale else step.variant.role) + " end" * is_end
    values = row.median, row.ci_low, row.ci_high
    if facts.figures.are_rates:
        case = facts.study.shown_case(step.variant)
        ends = row.ci_high, shortest_time(facts.figures, case, row)[0]
        low, high = (case.payload_bytes / seconds for seconds in ends)
        values = case.payload_bytes / row.median, low, high
    return Mark(*values, kind, f"{step.variant.name}: {_speed(facts, step)}")


def _limit_rate(facts: StudyFacts, journey: Journey) -> float | None:
    """The rate in B/s of the limit, from the rate and the share of the last step."""
    last = journey.last
    if journey.limit is None or last.time is None or last.share is None:
        return None
    payload = facts.study.shown_case(last.variant).payload_bytes
    return payload / last.time.median / last.share


def _speed(facts: StudyFacts, step: Step) -> str:
    """The rate of a step in a study with rates, otherwise its time."""
    assert step.time is not None
    payload = facts.study.shown_case(step.variant).payload_bytes
    return speed(payload if facts.figures.are_rates else 0, step.time.median)


def _gain_of(facts: StudyFacts, journey: Journey) -> Markup | str:
    """Speed of the last step relative to the first, paired by rounds; empty if too few runs have
    both."""
    first, last = journey.first.variant, journey.last.variant
    row = facts.figures.ratio(journey.machine, last, first, journey.metric)
    if row is not None:
        return figure(ratio(row.ratio), row) if is_headline(row) else ""
    row = facts.figures.ratio(journey.machine, first, last, journey.metric)
    return figure(ratio(1 / row.ratio), row) if row is not None and is_headline(row) else ""


def _shares(journey: Journey) -> str:
    """The shares of the limit that the two steps reach, or their ratio to a reference."""
    limit = journey.limit
    if limit is None:
        return "Limit unknown"
    ends = [one for one in (journey.first, journey.last) if one.share is not None and one.time]
    shares = [step.share for step in ends if step.share is not None]
    if limit.kind == "reference" and limit.variant is not None:
        return _beside(shares, limit.variant.title)
    is_exceeded = any(share > 1 and not is_at_limit(share) for share in shares)
    name = "the reference" if is_exceeded else "the limit"
    return _limit_shares(shares, with_interval(name, limit.clock))


def _beside(shares: Sequence[float], reference: str) -> str:
    """The speed of the last step relative to a reference, then that of the first step."""
    if not shares:
        return f"No ratio to {reference}"
    *first, last = shares
    said = f"{speed_phrase(last)} {'as' if last >= 1 else 'than'} {reference}"
    return "; ".join([said, *(f"the first step is {speed_phrase(share)}" for share in first)])


def _limit_shares(shares: Sequence[float], limit: str) -> str:
    below = _arrow(percent(share) for share in shares if not is_at_limit(share))
    is_reached = any(map(is_at_limit, shares))
    return _arrow([*([f"{below} of {limit}"] if below else []), *([f"at {limit}"] * is_reached)])


def _arrow(texts: Iterable[str]) -> str:
    return " → ".join(dict.fromkeys(texts))


def _standing(facts: StudyFacts, journey: Journey) -> str:
    """Machine, number of runs and hosts, stale steps and clock of a card's figures; the steps that
    it leaves out."""
    rows = journey.measured
    ends = [step.time for step in (journey.first, journey.last) if step.time is not None]
    least_runs = min(ends, key=lambda row: row.runs)
    parts = [facts.inputs.called(journey.machine), runs_phrase(least_runs.runs, least_runs.hosts)]
    if stale := sum(row.stale for row in rows):
        parts.append(f"{stale} of {len(rows)} steps stale")
    clock = facts.study.metrics[journey.metric].clock
    standing = ", ".join([*parts, f"by {clock}"])
    if not journey.left_out:
        return standing
    return (
        f"{standing}. Left out, without {clock}: {listing([one.name for one in journey.left_out])}"
    )


def top_findings(studies: Iterable[StudyFacts], address: Address) -> Markup | str:
    """A finding of each study, at most MAX_FINDINGS: a sentence with its figure and basis.

    Those that concern most readers come first, then those that contradict a belief. Findings from
    too few runs for a headline are left out.
    """
    best = [
        min(found, key=lambda one: _rank(one[1]))
        for facts in studies
        if (found := [(facts, *one) for one in findings(facts) if not one[1].few])
    ]
    items = [
        finding_line(facts, finding, result, _evidence(facts, result, address))
        for facts, finding, result in sorted(best, key=lambda one: _rank(one[1]))[:MAX_FINDINGS]
    ]
    return listed("ol", items, "hp-findings") if items else NOTHING


def study_findings(facts: StudyFacts, address: Address) -> Markup | str:
    """All findings of one study, as `top_findings`, those of too few runs last."""
    items = [
        finding_line(facts, finding, result, _evidence(facts, result, address))
        for finding, result in findings(facts)
    ]
    return listed("ul", items, "hp-findings") if items else NOTHING


def _rank(finding: Finding) -> tuple[int, bool]:
    return finding.precedence, not finding.belief


def _evidence(facts: StudyFacts, result: ClaimResult, address: Address) -> str:
    page = address(facts.study.name)
    return f"{page}#{claim_anchor(facts.study.name, result.claim.id)}" if page else ""


def other_studies(groups: Mapping[str, Sequence[StudyFacts]], address: Address) -> str:
    """The studies without a card, with their questions, by group; Markdown."""
    parts = []
    for title, studies in groups.items():
        items = [
            f"- {link(page, facts.study.title) if page else facts.study.title}:"
            f" {' '.join(facts.study.question.split())}"
            for facts in studies
            for page in [address(facts.study.name)]
        ]
        parts += [f"**{title}**", "\n".join(items)]
    return "\n\n".join(parts)
