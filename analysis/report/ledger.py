"""What the ledger and the pages of studies embed: every claim with its verdict on every machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from analysis.claims import Claim
from analysis.claims.verdicts import AFTERWARDS, FAILS, HOLDS, NOT_TESTED
from analysis.errors import require_known
from analysis.facts.addresses import claim_anchor, samples_address
from analysis.facts.rows import ClaimRow
from analysis.facts.study_facts import StudyFacts
from analysis.facts.verdicts import PUBLISHED
from analysis.quantities import INTERVAL
from analysis.report.html import NO_HTML, code, grouped_table, joined, link

COLUMNS: Final = ["on", "measured", INTERVAL, "verdict", "reason", "samples"]
UNMEASURED: Final = "no machine has been measured"
VERDICTS: Final = (HOLDS, FAILS, NOT_TESTED)
SET_AFTERWARDS: Final = "ours, set afterwards"
"""Of a bound that was set after the runs it is held against, or in no commit yet."""
UNFOLDED: Final = 4
"""Up to so many comparisons of one claim stand in view."""


@dataclass(frozen=True)
class Judged:
    """A claim with its row of claims.csv on every machine; without one, it has none."""

    claim: Claim
    rows: Sequence[ClaimRow]


def ledger(studies: Mapping[str, StudyFacts], pages: Mapping[str, str], root: str) -> str:
    """The claims of every study that has some; `pages` are addresses by study. Markdown."""
    parts = []
    for name, facts in studies.items():
        if facts.study.claims:
            title = facts.study.title
            parts.append(f"## [{title}]({pages[name]})" if name in pages else f"## {title}")
            parts.append(claims_of(facts, root))
    return "\n\n".join(parts) or "No study has claims yet."


def claims_of(facts: StudyFacts, root: str, ids: Sequence[str] = ()) -> str:
    """The write-up's claims and then ours, each kind counted and listed; Markdown and HTML.

    `ids` selects some of them. HotpathError names one that the study does not have.
    """
    known = [claim.id for claim in facts.study.claims]
    for one in ids:
        require_known(f"claims of {facts.study.name}", one, known)
    judged = [
        Judged(claim, facts.verdicts.by_claim.get(claim.id, []))
        for claim in facts.study.claims
        if not ids or claim.id in ids
    ]
    kinds = {
        "Of the write-up": [one for one in judged if not one.claim.ours],
        "Ours": [one for one in judged if one.claim.ours],
    }
    # An anchor is on the page once: where all claims are.
    parts = [
        _counted(facts, title, claims, root, anchored=not ids)
        for title, claims in kinds.items()
        if claims
    ]
    return "\n\n".join(parts) or "This study tests no claims."


def _counted(
    facts: StudyFacts, title: str, claims: Sequence[Judged], root: str, *, anchored: bool
) -> str:
    """How often `claims` hold on every machine, then each of them; Markdown and HTML."""
    groups = [
        (_heading(facts, judged, anchored=anchored), _lines(facts, judged, root))
        for judged in claims
    ]
    listed = grouped_table(COLUMNS, groups, numeric=COLUMNS[1:3])
    return f"**{title}:**\n\n{_count(claims)}\n\n{listed}"


def _count(claims: Sequence[Judged]) -> str:
    """`On box: holds 5, not tested 2.` for every machine."""
    verdicts: dict[str, list[str]] = {}
    for judged in claims:
        if not judged.rows:
            verdicts.setdefault("On no machine yet", []).append(NOT_TESTED)
        for row in judged.rows:
            verdicts.setdefault(_place(row), []).append(row.verdict)
    counts = {
        place: ", ".join(f"{name} {found.count(name)}" for name in VERDICTS if name in found)
        for place, found in verdicts.items()
    }
    return "\n".join(f"- {place}: {counted}." for place, counted in counts.items())


def _place(row: ClaimRow) -> str:
    """Where a verdict is counted; those by bounds that were set afterwards apart."""
    if row.machine == PUBLISHED:
        return "By the published rows alone"
    is_fitted = row.bound == AFTERWARDS and row.verdict != NOT_TESTED
    return f"On {row.machine}" + (f", by a bound that is {SET_AFTERWARDS}" if is_fitted else "")


def _heading(facts: StudyFacts, judged: Judged, *, anchored: bool) -> Markup:
    """The claim in our words, the write-up's figure where there is one, and when it was set."""
    claim = judged.claim
    published = judged.rows[0].published if judged.rows else claim.published
    written = _written(facts, claim, math.nan if published is None else published)
    since = f" since {claim.bounds.set_at}, {claim.bounds.commit}" if claim.bounds else ""
    anchor = claim_anchor(facts.study.name, claim.id)
    marked = Markup('<a id="{}"></a>').format(anchor) if anchored else NO_HTML
    return Markup("{}{}<span>{} {}{}</span>").format(
        marked, claim.says, f" Published: {written}." if written else "", code(claim.id), since
    )


def _lines(facts: StudyFacts, judged: Judged, root: str) -> list[list[object]]:
    """What COLUMNS show of the claim, a line a machine."""
    claim = judged.claim
    if not judged.rows:
        reason = claim.untested or UNMEASURED
        verdict = _verdict(NOT_TESTED)
        return [["no machine", "", "", verdict, reason, _samples(facts, claim, "", root)]]
    return [
        [
            "published rows" if row.machine == PUBLISHED else row.machine,
            _written(facts, claim, row.measured),
            _interval(facts, claim, row),
            _verdict(row.verdict, row.bound),
            _reason(facts, claim, row),
            _samples(facts, claim, row.machine, root),
        ]
        for row in judged.rows
    ]


def _verdict(verdict: str, bound: str = "") -> Markup:
    fails = " hp-fails" if verdict == FAILS else ""
    found = Markup('<span class="hp-verdict{}">{}</span>').format(fails, verdict)
    return joined("<br>", [found, *([SET_AFTERWARDS] if bound == AFTERWARDS else [])])


def _reason(facts: StudyFacts, claim: Claim, row: ClaimRow) -> object:
    """Of a claim that is made up of several comparisons all of them, one below the other; of many
    only the first is open to view."""
    parts = facts.verdicts.parts.get((claim.id, row.machine))
    if not parts:
        return row.reason
    first, *rest = (part.sentence(with_case=claim.in_several_cases) for part in parts)
    if len(parts) <= UNFOLDED:
        return joined("<br>", [first, *rest])
    return Markup('{}<details class="hp-more"><summary>and {} more</summary>{}</details>').format(
        first, len(rest), joined("<br>", rest)
    )


def _samples(facts: StudyFacts, claim: Claim, machine: str, root: str) -> Markup:
    """The variants compared, each leading to its samples on this machine where there are some."""
    study = facts.study.name
    names = []
    for variant in claim.variants:
        is_measured = (machine, study, variant) in facts.inputs.provenance
        address = f"{root}{samples_address(machine, study, variant)}"
        names.append(link(address, code(variant)) if is_measured else code(variant))
    return joined(" ", names)


def _written(facts: StudyFacts, claim: Claim, value: float) -> str:
    """A figure as its kind of comparison is written; empty where there is none."""
    return "" if math.isnan(value) else claim.write(value, facts.study.units)


def _interval(facts: StudyFacts, claim: Claim, row: ClaimRow) -> str:
    is_known = not (math.isnan(row.ci_low) or math.isnan(row.ci_high))
    is_exact = claim.on_rows and row.ci_low == row.ci_high
    if not is_known or is_exact:
        return ""
    (test,) = claim.tests
    return test.write_interval(row.ci_low, row.ci_high, test.figure_unit(facts.study.units))
