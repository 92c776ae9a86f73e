"""Parts of the home page: a card per journey, the findings, and all other studies."""

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
    ratio_interval,
    runs_phrase,
    speed,
    speed_phrase,
    times_phrase,
    with_interval,
)
from analysis.site.facts.addresses import claim_anchor
from analysis.site.facts.basis import FEW, is_headline, with_basis
from analysis.site.facts.findings import ClaimResult, Slower, findings, largest_surprise
from analysis.site.facts.journeys import MODEL, REFERENCE, Journey, Step, journey_of
from analysis.site.facts.points import shortest_time
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.agreement import agreement_sentence
from analysis.site.pages.findings import finding_item
from analysis.site.pages.html import code, link, listed, paragraph
from analysis.site.pages.page import macro
from analysis.site.pages.pictures import Mark, columns, times
from analysis.site.pages.sentences import NOTHING
from analysis.site.pages.templates import macros
from analysis.study.claims.verdicts import HOLDS

Address = Callable[[str], str]
"""Relative address of a study's page; empty for a study without a page."""

_CARDS: Final = macros("card.html")
COUNTS: Final = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")


@macro()
def where_holds(studies: Mapping[str, StudyFacts], study: str, claim: str) -> str:
    """` on H100 and H200`, the machines on which a claim holds.

    study: its name
    claim: id of the claim
    """
    facts = studies.get(study)
    rows = facts.verdicts.by_claim.get(claim, []) if facts else []
    machines = [facts.inputs.called(row.machine) for row in rows if facts and row.verdict == HOLDS]
    return f" on {listing(machines)}" if machines else ", which no machine's results confirm yet"


def cards(studies: Iterable[StudyFacts], address: Address) -> Markup:
    """One card per study: gain of its steps, distance from the limit, largest surprise."""
    return _CARDS.cards([_card(facts, address(facts.study.name)) for facts in studies])


def _card(facts: StudyFacts, address: str) -> Markup:
    journey = journey_of(facts)
    if journey is None:
        content = paragraph(_unmeasured(facts) if facts.machines else NOTHING)
    else:
        content = _journey(facts, journey)
    return _CARDS.card(facts.study.title, address, content)


def _journey(facts: StudyFacts, journey: Journey) -> Markup:
    """From the first step to the last: as a picture, figures, names and shares of the limit."""
    steps = {step.variant.name: step for step in (journey.first, journey.last)}.values()
    return _CARDS.journey(
        picture=_picture(facts, journey),
        speeds=[_speed(facts, step) for step in steps],
        gain=_gain_of(facts, journey) if len(steps) > 1 else "",
        titles=[step.variant.title for step in steps],
        shares=_shares(facts, journey),
        surprise=_surprise(facts, journey.machine),
        standing=_standing(facts, journey),
    )


def _unmeasured(facts: StudyFacts) -> str:
    machines = listing([facts.inputs.called(machine) for machine in facts.machines])
    contenders = [
        (machine, step) for machine in facts.machines for step in facts.ranking.contenders(machine)
    ]
    times = [facts.figures.time(machine, step) for machine, step in contenders]
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
    limit = journey.limit
    row = facts.figures.time(journey.machine, limit.variant) if limit and limit.variant else None
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


def _gain_of(facts: StudyFacts, journey: Journey) -> str:
    """Speed of the last step relative to the first, paired by rounds; empty if too few runs have
    both."""
    first, last = journey.first.variant, journey.last.variant
    row = facts.figures.comparison(journey.machine, last, first)
    if row is not None:
        return ratio(row.ratio) if is_headline(row) else ""
    row = facts.figures.comparison(journey.machine, first, last)
    return ratio(1 / row.ratio) if row is not None and is_headline(row) else ""


def _shares(facts: StudyFacts, journey: Journey) -> str:
    """The shares of the limit that the two steps reach, or their ratio to a reference, and the
    clock of each."""
    limit = journey.limit
    if limit is None:
        return "The physical limit is not known."
    ends = [one for one in (journey.first, journey.last) if one.share is not None and one.time]
    shares = [step.share for step in ends if step.share is not None]
    metrics = [step.time.metric for step in ends if step.time is not None]
    clocks = f"by {_arrow(facts.study.metrics[metric].label for metric in metrics)}"
    if limit.kind == MODEL:
        return f"{_limit_shares(shares, 'the limit of the link model')}, {clocks}"
    assert limit.variant is not None
    if limit.kind == REFERENCE:
        shown = f"{_arrow(map(speed_phrase, shares))}, compared with"
    else:
        is_exceeded = any(share > 1 and not is_at_limit(share) for share in shares)
        name = "the reference, which is no limit" if is_exceeded else "the limit"
        shown = f"{_limit_shares(shares, name)}:"
    return f"{shown} {limit.variant.title} (dashed), {clocks}"


def _limit_shares(shares: Sequence[float], limit: str) -> str:
    below = _arrow(percent(share) for share in shares if not is_at_limit(share))
    is_reached = any(map(is_at_limit, shares))
    return _arrow([*([f"{below} of {limit}"] if below else []), *([f"at {limit}"] * is_reached)])


def _arrow(texts: Iterable[str]) -> str:
    return " → ".join(dict.fromkeys(texts))


def _standing(facts: StudyFacts, journey: Journey) -> str:
    """Machine, number of runs and hosts, date, and stale or missing steps of a card's figures."""
    rows = journey.measured
    ends = [step.time for step in (journey.first, journey.last) if step.time is not None]
    least_runs = min(ends, key=lambda row: row.runs)
    parts = [
        facts.inputs.called(journey.machine),
        runs_phrase(least_runs.runs, least_runs.hosts),
        max(row.run for row in rows)[:10],
    ]
    if stale := sum(row.stale for row in rows):
        parts.append(f"{stale} of {len(rows)} steps stale")
    known = (facts.figures.time(journey.machine, step.variant) for step in journey.steps)
    few = sum(row is not None for row in known) - len(rows)
    if few:
        parts.append(
            f"{few} step{'s have' if few > 1 else ' has'} no figure: too few runs, or runs that"
            " fall into separate groups"
        )
    if missing := len(journey.steps) - len(rows) - few:
        parts.append(f"{missing} not measured")
    others = [facts.inputs.called(one) for one in facts.machines if one != journey.machine]
    return "; ".join([*parts, *([f"also on {listing(others)}"] if others else [])])


def _surprise(facts: StudyFacts, machine: str) -> Markup | str:
    """One sentence about the claim that missed its expectation by most."""
    surprise = largest_surprise(facts, machine)
    if surprise is None:
        return ""
    if isinstance(surprise, Slower):
        row, inverse = surprise.row, 1 / surprise.row.ratio
        interval = ratio_interval(1 / row.ci_high, 1 / row.ci_low)
        return Markup("{} takes {} ({}) as long as {}, the previous step.").format(
            code(surprise.step.name), times_phrase(inverse), interval, code(surprise.after.name)
        )
    published = surprise.write(surprise.figures.published)
    said = f"published: {published}" if published else f"expected: {surprise.bound()}"
    return Markup("{}: “{}” {}; {}.").format(
        surprise.row.verdict.capitalize(), surprise.claim.says, _measured(facts, surprise), said
    )


def _measured(facts: StudyFacts, result: ClaimResult) -> str:
    """The measured figure with the counted thing, its interval or runs, and its basis."""
    counted = result.counted(facts.study)
    notes = with_basis(result.figures, result.interval(), result.write)
    figure = with_interval(result.write(result.figures.measured), notes)
    return f"Measured, {counted}: {figure}" if counted else f"Measured: {figure}"


def contradicted_beliefs(studies: Iterable[StudyFacts], address: Address) -> str:
    """Findings of all studies that contradict a belief, with figures and evidence; those from too
    few runs for a headline are only counted.

    Markdown and HTML. Those that concern most readers come first, then in the order of the studies.
    """
    found = [
        (facts, finding, result)
        for facts in studies
        for finding, result in findings(facts)
        if finding.belief
    ]
    few = sum(bool(result.few) for _, _, result in found)
    items = [
        finding_item(
            facts,
            finding,
            result,
            f"{page}#{claim_anchor(facts.study.name, result.claim.id)}" if page else "",
        )
        for facts, finding, result in sorted(found, key=lambda one: one[1].precedence)
        if not result.few
        for page in [address(facts.study.name)]
    ]
    number = COUNTS[len(items)] if len(items) < len(COUNTS) else str(len(items))
    plural = "" if len(items) == 1 else "s"
    verb = "contradicts" if len(items) == 1 else "contradict"
    heading = f"## {number} finding{plural} that {verb} common beliefs"
    shown = listed("ol", items, "hp-findings") if items else NOTHING * (not few)
    return "\n\n".join(filter(None, [heading, shown, _left_out(few)]))


def _left_out(few: int) -> str:
    """A sentence about the number of findings that no headline may have; empty for none."""
    if not few:
        return ""
    more = "One more is" if few == 1 else f"{few} more are"
    return f"{more} based on {FEW}. The pages of the studies have them."


def other_studies(groups: Mapping[str, Sequence[StudyFacts]], address: Address) -> str:
    """Questions of the studies without a card, by group; Markdown."""
    parts = []
    for title, studies in groups.items():
        parts.append(f"### {title}")
        for facts in studies:
            name = facts.study.title
            page = address(facts.study.name)
            heading = link(page, name) if page else name
            outcome = agreement_sentence(facts.inputs) if facts.is_about_repeats else ""
            parts.append(f"**{heading}.** {facts.study.question.strip()} {outcome}".strip())
    return "\n\n".join(parts)
