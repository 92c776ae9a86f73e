"""Findings on pages: sentence, measured figure, machine and evidence."""

from __future__ import annotations

from markupsafe import Markup

from analysis.base.quantities import INTERVAL, listing
from analysis.site.facts.addresses import claim_anchor
from analysis.site.facts.findings import ClaimResult, findings
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.facts.verdicts import UNDECIDED, chosen_after, judges_phrase
from analysis.site.pages.html import NO_HTML, listed
from analysis.site.pages.templates import macros
from analysis.study.claims.findings import Finding
from analysis.study.claims.verdicts import NOT_TESTED


def finding_list(facts: StudyFacts) -> Markup:
    """The findings of a study, for its page; empty without any."""
    items = [
        finding_item(facts, finding, result, f"#{claim_anchor(facts.study.name, result.claim.id)}")
        for finding, result in findings(facts)
    ]
    return listed("ul", items, "hp-findings") if items else NO_HTML


def finding_item(facts: StudyFacts, finding: Finding, result: ClaimResult, evidence: str) -> Markup:
    """A finding with its figure on one machine, its verdicts on others, and a link to its
    `evidence` unless that is empty."""
    interval = result.interval()
    return macros("claim.html").finding(
        sentence=headline(finding, result),
        belief=finding.belief,
        interval=f"{INTERVAL}: {interval}" if interval else "",
        where=_where(facts, result),
        elsewhere=_elsewhere(facts, result),
        runs=_by_which_runs(result),
        evidence=evidence,
    )


def _by_which_runs(result: ClaimResult) -> str:
    """A note if the verdict uses only some runs, or runs that are older than the threshold."""
    notes = (chosen_after(result.row), judges_phrase(result.row))
    return "".join(f", {note}" for note in notes if note)


def headline(finding: Finding, result: ClaimResult) -> str:
    """The sentence with its figures."""
    figures = {
        "measured": result.write(result.figures.measured),
        "published": result.write(result.figures.published),
    }
    return finding.sentence(figures)


def _where(facts: StudyFacts, result: ClaimResult) -> str:
    """The machine, and a note if the figure is based on one run."""
    machine = result.row.machine
    times = [
        facts.figures.time(machine, facts.study.variant(name)) for name in result.claim.variants
    ]
    is_one_run = any(time is not None and time.runs == 1 for time in times)
    called = facts.inputs.called(machine)
    return f"{called} (one run)" if is_one_run else called


def _elsewhere(facts: StudyFacts, result: ClaimResult) -> str:
    """Verdicts on other machines."""
    verdicts: dict[str, list[str]] = {}
    for row in result.others:
        verdicts.setdefault(facts.verdicts.shown(row), []).append(facts.inputs.called(row.machine))
    same = verdicts.pop(result.row.verdict, [])
    parts = [f", also on {listing(same)}"] if same else []
    for verdict in (UNDECIDED, NOT_TESTED):
        if machines := verdicts.pop(verdict, []):
            parts.append(f", {verdict} on {listing(machines)}")
    return "".join(parts + [f", but not on {listing(others)}" for others in verdicts.values()])
