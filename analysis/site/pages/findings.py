"""Findings on pages: sentence, measured figure, machine and evidence."""

from __future__ import annotations

import math

from markupsafe import Markup, escape

from analysis.base.quantities import listing, runs_phrase, with_interval
from analysis.site.facts.addresses import claim_anchor
from analysis.site.facts.basis import basis_phrase, is_enough
from analysis.site.facts.findings import ClaimResult, findings
from analysis.site.facts.rows import ClaimRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.facts.verdicts import UNDECIDED, chosen_after, judges_phrase
from analysis.site.pages.html import NO_HTML, listed, with_data
from analysis.site.pages.templates import macros
from analysis.study.claims.claim import Finding
from analysis.study.claims.verdicts import NOT_TESTED


def thesis(facts: StudyFacts, given: str = "") -> Markup:
    """The `given` sentence, or else the finding that a study's page opens with; empty without any
    finding."""
    if given:
        return macros("claim.html").thesis(Markup("<strong>{}</strong>").format(given))
    found = findings(facts)
    return macros("claim.html").thesis(_item(facts, *_thesis(found))) if found else NO_HTML


def advice_list(facts: StudyFacts) -> Markup:
    """Advice of the findings of a study, each with its reason; empty without advice."""
    items = [
        macros("claim.html").advised(finding.advice, _item(facts, finding, result))
        for finding, result in findings(facts)
        if finding.advice
    ]
    return listed("ol", items, "hp-findings") if items else NO_HTML


def other_findings(facts: StudyFacts) -> list[Markup]:
    """The findings of a study that are neither its thesis nor beside an advice."""
    found = findings(facts)
    opening = _thesis(found) if found else None
    return [_item(facts, *one) for one in found if one is not opening and not one[0].advice]


def _thesis(found: list[tuple[Finding, ClaimResult]]) -> tuple[Finding, ClaimResult]:
    """The one to open with: of those that may be a headline, if there are any."""
    settled = [one for one in found if not one[1].few] or found
    return next((one for one in settled if one[0].opens), settled[0])


def _item(facts: StudyFacts, finding: Finding, result: ClaimResult) -> Markup:
    evidence = f"#{claim_anchor(facts.study.name, result.claim.id)}"
    return finding_item(facts, finding, result, evidence)


def finding_item(facts: StudyFacts, finding: Finding, result: ClaimResult, evidence: str) -> Markup:
    """A finding with its figure on one machine, its verdicts on others, and a link to its
    `evidence` unless that is empty."""
    return macros("claim.html").finding(
        sentence=_headline(finding, result),
        belief=finding.belief,
        doubt="in these runs" if result.few else "",
        few=result.few.capitalize(),
        spread=result.spread(),
        where=_where(facts, result),
        elsewhere=_elsewhere(facts, result),
        runs=_by_which_runs(result),
        evidence=evidence,
    )


def finding_line(facts: StudyFacts, finding: Finding, result: ClaimResult, evidence: str) -> Markup:
    """A finding as one sentence, with the basis of its figure and a link to its `evidence`."""
    return macros("claim.html").finding(
        sentence=_headline(finding, result),
        belief="",
        doubt="",
        few="",
        spread=result.spread(),
        where=_where(facts, result),
        elsewhere="",
        runs=_by_which_runs(result),
        evidence=evidence,
    )


def _by_which_runs(result: ClaimResult) -> str:
    """A note if the verdict uses only some runs, or runs that are older than the threshold."""
    notes = (chosen_after(result.row), judges_phrase(result.row))
    return "".join(f", {note}" for note in notes if note)


def headline(finding: Finding, result: ClaimResult) -> str:
    """The sentence with its figures."""
    return finding.sentence(_figures(result))


def _headline(finding: Finding, result: ClaimResult) -> Markup:
    """The same as HTML, in which the measured figure says of what it is."""
    figures = _figures(result)
    shown = claim_figure(figures["measured"], result, "inverse" if finding.inverse else "value")
    return Markup(escape(finding.headline)).format(**{**figures, "measured": shown})


def _figures(result: ClaimResult) -> dict[str, str]:
    return {
        "measured": result.write(result.figures.measured),
        "published": result.write(result.figures.published),
    }


def claim_figure(text: object, result: ClaimResult, statistic: str = "value") -> Markup:
    """`text` with the figure of a claim, which says of what it is: the value or its inverse."""
    row = result.row
    parts = (row.machine, row.study, f"claim:{row.claim}", f"part:{result.part}", statistic)
    return with_data(text, result.figures.measured, *parts)


def _where(facts: StudyFacts, result: ClaimResult) -> str:
    """The machine with the runs and hosts of its figure; with all machines whose runs are enough
    for the same verdict, if that machine's are."""
    called = facts.inputs.called(result.row.machine)
    basis = basis_phrase(result.figures) or "one profile" * result.claim.on_counters
    alike = [facts.inputs.called(row.machine) for row in _alike(result)]
    if not alike:
        return with_interval(called, basis)
    return f"{listing(sorted([called, *alike]))} (figure of {called}: {basis})"


def _alike(result: ClaimResult) -> list[ClaimRow]:
    """The other machines that have the same verdict from enough runs, if this one has."""
    if result.few or not result.figures.by_run:
        return []
    return [
        row
        for row in result.others
        if row.verdict == result.row.verdict and is_enough(row.runs, row.hosts)
    ]


def _elsewhere(facts: StudyFacts, result: ClaimResult) -> str:
    """Verdicts on machines that `_where` does not name."""
    verdicts: dict[str, list[str]] = {}
    scarce: list[str] = []
    alike = _alike(result)
    for row in result.others:
        if row in alike:
            continue
        basis = runs_phrase(row.runs, row.hosts) if row.runs else ""
        where = facts.inputs.called(row.machine)
        verdict = facts.verdicts.shown(row)
        few = not is_enough(row.runs, row.hosts)
        if verdict == UNDECIDED and few and (figure := _other_figure(result, row)):
            scarce.append(f"; {where}: {figure} in {basis}, too few to say")
        else:
            verdicts.setdefault(verdict, []).append(with_interval(where, basis))
    same = verdicts.pop(result.row.verdict, [])
    parts = [f", also on {listing(same)}"] if same else []
    for verdict in (UNDECIDED, NOT_TESTED):
        if machines := verdicts.pop(verdict, []):
            parts.append(f", {verdict} on {listing(machines)}")
    parts += [f", but not on {listing(others)}" for others in verdicts.values()]
    return "".join(parts + scarce)


def _other_figure(result: ClaimResult, row: ClaimRow) -> str:
    """The finding's figure on another machine; empty for a claim with several comparisons."""
    finding = result.claim.finding
    if finding is None or len(result.claim.tests) > 1 or math.isnan(row.measured):
        return ""
    value = 1 / row.measured if finding.inverse else row.measured
    return result.test.write(value, row.unit)
