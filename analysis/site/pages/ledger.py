"""Claims with their verdicts on every machine, for the ledger and the pages of studies."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from analysis.base.quantities import runs_phrase, with_interval
from analysis.results.tables.rows import ClaimRow
from analysis.site.facts.addresses import claim_anchor, samples_address
from analysis.site.facts.basis import SPREAD, spread
from analysis.site.facts.claims import PUBLISHED, chosen_after, judges_phrase, written_interval
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import NO_HTML, code, element, folded, joined, link, table
from analysis.site.pages.inline import KINDS
from analysis.site.pages.page import Page, macro, root_from
from analysis.study.claims import Claim
from analysis.study.claims.verdicts import NOT_TESTED

UNMEASURED: Final = "no machine has been measured"
MAX_UNFOLDED: Final = 4
"""Maximum number of unfolded comparisons of one claim."""


@macro
def ledger(page: Page) -> str:
    """Every claim of every study on one line, with the verdict and figure on each machine."""
    names = json.dumps(page.inputs.machine_names, ensure_ascii=False)
    # assets/ledger.js puts the filters before it, and counts in it.
    parts: list[str] = [element("p", class_="hp-ledger", role="status", data_names=names)]
    for name, facts in page.staged.studies.items():
        if facts.study.claims:
            parts.append(f"## {facts.study.title} {{: #{name} .fold }}")
            if name in page.staged.pages:
                parts.append(f"[The study](studies/{name}.md)")
            parts.append(claim_lines(page, facts, facts.study.claims))
    return "\n\n".join(parts)


def claims(page: Page) -> Markup:
    """The claims of the study, each on a line with its verdict and figure on each machine; those
    of a write-up first."""
    known = page.facts.study.claims
    return claim_lines(page, page.facts, sorted(known, key=lambda claim: claim.ours))


def claim_lines(page: Page, facts: StudyFacts, claims: Sequence[Claim]) -> Markup:
    """A line for each claim; nothing without claims."""
    lines = [_line(page, facts, claim) for claim in claims]
    return element("div", *lines, class_="hp-claims", data_search_exclude="") if lines else NO_HTML


def _line(page: Page, facts: StudyFacts, claim: Claim) -> Markup:
    """A line with the claim and its verdicts, which unfolds into its figures and reasons."""
    study, verdicts = facts.study.name, facts.verdicts
    path = f"evidence/{study}/claims/{claim.id}.html"
    rows = verdicts.by_claim.get(claim.id, [])
    shown, judged, lines = [], [], []
    for row in rows:
        found, few = verdicts.shown(row), verdicts.in_few(row)
        place = "published rows" if row.machine == PUBLISHED else row.machine
        where, measured = page.inputs.called(place), _written(claim, row.measured)
        figure = with_interval(": ".join(filter(None, [where, measured])), few)
        shown.append(joined(" ", [_verdict(found), figure]))
        judged.append([place, found])
        notes = ", ".join(filter(None, [few, chosen_after(row)]))
        # Of several comparisons, only the runs are shown.
        interval = written_interval(claim.tests[0], row) if len(claim.tests) == 1 else ""
        runs = runs_phrase(row.runs, row.hosts) if row.runs else ""
        lines.append(
            {
                "on": where,
                "measured": measured,
                SPREAD: spread(row, interval, lambda value: _written(claim, value)),
                "runs": judges_phrase(row) or runs,
                "verdict": joined("<br>", filter(None, [_verdict(found), notes])),
                "reason": _reason(facts, claim, row),
                "samples": _samples(facts, claim, row, root_from(path)),
            }
        )
    if not rows:
        shown = [_verdict(NOT_TESTED)]
        lines = [{"verdict": shown[0], "reason": claim.untested or UNMEASURED}]
    published = rows[0].published if rows else claim.published
    printed = "" if published is None else _written(claim, published)
    about = [f"{claim.id}."]
    about += [f"Compared: {claim.tests[0].title}."] if len(claim.tests) == 1 else []
    about += [f"Published: {printed}."] if printed else []
    summary = joined("", [claim.says, element("span", joined(" ", shown))])
    return page.fold(
        path,
        summary,
        claim.says,
        element("p", " ".join(about)) + table(lines),
        anchor=claim_anchor(study, claim.id),
        study=study,
        by="ours" if claim.ours else "write-up",
        verdicts=json.dumps(judged),
    )


def _verdict(verdict: str) -> Markup:
    return element("span", verdict, class_=f"hp-verdict{KINDS.get(verdict, '')}")


def _reason(facts: StudyFacts, claim: Claim, row: ClaimRow) -> object:
    """Reason of a verdict. For a claim with several comparisons, one line each; if there are many,
    all but the first are folded."""
    if parts := facts.verdicts.parts.get((claim.id, row.machine)):
        first, *rest = (part.sentence(with_case=claim.in_several_cases) for part in parts)
        if len(parts) <= MAX_UNFOLDED:
            return joined("<br>", [first, *rest])
        return joined("", [first, folded(f"and {len(rest)} more", joined("<br>", rest))])
    return row.reason


def _samples(facts: StudyFacts, claim: Claim, row: ClaimRow, root: str) -> Markup:
    """The compared variants, each with a link to its samples on this machine if there are any."""
    study, parts = facts.study.name, []
    for name in claim.variants:
        address = f"{root}{samples_address(row.machine, study, name, row.case)}"
        is_there = (row.machine, study, name) in facts.inputs.runs_of
        parts.append(link(address, code(name)) if is_there else code(name))
    return joined(" ", parts)


def _written(claim: Claim, value: float) -> str:
    """A figure in the format of its kind of comparison; empty for NaN."""
    return "" if math.isnan(value) else claim.write(value)
