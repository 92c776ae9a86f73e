"""Claims with their verdicts on every machine, for the ledger and the pages of studies."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from markupsafe import Markup

from analysis.base.errors import require_known
from analysis.base.quantities import runs_phrase, with_interval
from analysis.site.facts.addresses import claim_anchor, samples_address
from analysis.site.facts.basis import FEW, SPREAD, is_enough, spread
from analysis.site.facts.claims import (
    PUBLISHED,
    UNDECIDED,
    chosen_after,
    judges_phrase,
    written_interval,
)
from analysis.site.facts.rows import ClaimRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.fragments import Place, root_from
from analysis.site.pages.html import NO_HTML, code, folded, joined, link, paragraph, table
from analysis.site.pages.page import Page, macro
from analysis.site.pages.templates import macros
from analysis.study.claims import Claim
from analysis.study.claims.verdicts import FAILS, HOLDS, NOT_TESTED

_CLAIMS: Final = macros("claim.html")
VERDICTS: Final = (HOLDS, FAILS, UNDECIDED, NOT_TESTED)
KINDS: Final = {HOLDS: " hp-holds", FAILS: " hp-fails"}
"""Classes of verdicts."""
UNMEASURED: Final = "no machine has been measured"
UNFOLDED: Final = 4
"""Maximum number of unfolded comparisons of one claim."""


@dataclass(frozen=True, eq=False)
class Judged:
    """A claim with its rows of claims.csv, one per machine, the displayed verdict of each, and
    `in 1 run on 1 host` for a verdict that uses few runs."""

    facts: StudyFacts
    claim: Claim
    rows: Sequence[tuple[ClaimRow, str, str]]

    @property
    def verdicts(self) -> list[str]:
        """The verdict on each machine; `not tested` for a claim without rows."""
        return [verdict for _, verdict, _ in self.rows] or [NOT_TESTED]


@macro("ledger")
def ledger(page: Page, studies: Mapping[str, StudyFacts], place: Place) -> str:
    """Every claim of every study on one line, with the verdict and figure on each machine."""
    judged = {name: _judged(facts) for name, facts in studies.items() if facts.study.claims}
    counts = Counter(v for claims in judged.values() for one in claims for v in one.verdicts)
    counted = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])
    names = json.dumps(page.staged.inputs.machine_names, ensure_ascii=False)
    sentence = f"{counts.total()} verdicts, one per claim and machine: {counted}."
    parts: list[str] = [_CLAIMS.counted(names, FEW, sentence)]
    for name, claims in judged.items():
        title = studies[name].study.title
        parts.append(f"## {title} {{: #{name} .fold }}")
        parts += [f"[The study]({page.staged.pages[name]})"] if name in page.staged.pages else []
        parts.append(_CLAIMS.claims([_folded(one, place, anchored=True) for one in claims]))
    return "\n\n".join(parts)


@macro("claims", may_be_empty=True)
def claims(facts: StudyFacts, place: Place, *ids: str) -> Markup:
    """The claims of the study, each on a line with its verdict and figure on each machine; those
    of a write-up first.

    ids: some of the claims; all if omitted
    """
    for one in ids:
        require_known("claim", one, [claim.id for claim in facts.study.claims])
    shown = [one for one in _judged(facts) if not ids or one.claim.id in ids]
    shown.sort(key=lambda one: one.claim.ours)
    # Only the complete list has anchors, because an anchor must be unique on a page.
    boxes = [_folded(one, place, anchored=not ids) for one in shown]
    return _CLAIMS.claims(boxes) if boxes else NO_HTML


def _judged(facts: StudyFacts) -> list[Judged]:
    verdicts = facts.verdicts
    return [
        Judged(
            facts,
            claim,
            [
                (row, verdicts.shown(row), verdicts.in_few(row))
                for row in verdicts.by_claim.get(claim.id, [])
            ],
        )
        for claim in facts.study.claims
    ]


def _folded(judged: Judged, place: Place, *, anchored: bool) -> Markup:
    """A line with the claim and its verdicts, which unfolds into its figures and reasons."""
    study, claim = judged.facts.study.name, judged.claim
    path = f"evidence/{study}/claims/{claim.id}.html"
    content = paragraph(_origin(judged)) + table(_lines(judged, root_from(path)))
    return place.folded(
        path,
        _CLAIMS.summary(claim.says, _verdicts(judged)),
        claim.says,
        content,
        anchor=claim_anchor(study, claim.id) if anchored else "",
        study=study,
        by="ours" if claim.ours else "write-up",
        verdicts=json.dumps([[_place(row), found, bool(few)] for row, found, few in judged.rows]),
    )


def _verdicts(judged: Judged) -> Markup:
    """Each machine's verdict and figure."""
    shown = []
    for row, verdict, few in judged.rows:
        figure = ": ".join(filter(None, [_where(judged, row), _written(judged, row.measured)]))
        shown.append(Markup("{} {}").format(_verdict(verdict), with_interval(figure, few)))
    return joined(" ", shown or [_verdict(NOT_TESTED)])


def _verdict(verdict: str, mark: str = "") -> Markup:
    return _CLAIMS.verdict(verdict, KINDS.get(verdict, ""), mark)


def _where(judged: Judged, row: ClaimRow) -> str:
    return judged.facts.inputs.called(_place(row))


def _place(row: ClaimRow) -> str:
    """Name of the machine in the ledger's addresses."""
    return "published rows" if row.machine == PUBLISHED else row.machine


def _origin(judged: Judged) -> Markup:
    """The claim's id, its comparison if it has only one, and the published figure, if any."""
    claim = judged.claim
    published = judged.rows[0][0].published if judged.rows else claim.published
    written = _written(judged, math.nan if published is None else published)
    shown = f" Published: {written}." if written else ""
    compared = f" Compared: {claim.tests[0].title}." if len(claim.tests) == 1 else ""
    return Markup("{}.{}{}").format(code(claim.id), compared, shown)


def _lines(judged: Judged, root: str) -> list[dict[str, object]]:
    """Cells of the claim's table, a line per machine."""
    if not judged.rows:
        reason = judged.claim.untested or UNMEASURED
        return [{"verdict": _verdict(NOT_TESTED), "reason": reason}]
    return [
        {
            "on": _where(judged, row),
            "measured": _written(judged, row.measured),
            SPREAD: _spread(judged, row),
            "runs": judges_phrase(row) or (runs_phrase(row.runs, row.hosts) if row.runs else ""),
            "verdict": _verdict(verdict, ", ".join(filter(None, [few, chosen_after(row)]))),
            "reason": _reason(judged, row),
            "samples": _samples(judged, row, root),
        }
        for row, verdict, few in judged.rows
    ]


def _reason(judged: Judged, row: ClaimRow) -> object:
    """Reason of a verdict. For a claim with several comparisons, one line each; if there are many,
    all but the first are folded."""
    parts = judged.facts.verdicts.parts.get((judged.claim.id, row.machine))
    if not parts:
        return ", ".join(filter(None, [_of_some_runs(judged, row), row.reason]))
    first, *rest = (part.sentence(with_case=judged.claim.in_several_cases) for part in parts)
    if len(parts) <= UNFOLDED:
        return joined("<br>", [first, *rest])
    return Markup("{}{}").format(first, folded(f"and {len(rest)} more", joined("<br>", rest)))


def _of_some_runs(judged: Judged, row: ClaimRow) -> str:
    """The figure of the runs that the verdict uses, if these are not all; else empty."""
    if not judges_phrase(row) or len(judged.claim.tests) != 1 or math.isnan(row.judged):
        return ""
    few = replace(row, measured=row.judged, ci_low=row.judged_low, ci_high=row.judged_high)
    interval = _interval(judged, few) if is_enough(row.judging, row.judging_hosts) else ""
    figure = with_interval(_written(judged, row.judged), interval)
    return f"in the runs that the verdict uses: {figure}"


def _samples(judged: Judged, row: ClaimRow, root: str) -> Markup:
    """The compared variants, each with a link to its samples on this machine if there are any."""
    study, known = judged.facts.study.name, judged.facts.inputs.runs_of
    return joined(
        " ",
        (
            link(f"{root}{samples_address(row.machine, study, name, row.case)}", code(name))
            if (row.machine, study, name) in known
            else code(name)
            for name in judged.claim.variants
        ),
    )


def _written(judged: Judged, value: float) -> str:
    """A figure in the format of its kind of comparison; empty for NaN."""
    return "" if math.isnan(value) else judged.claim.write(value, judged.facts.study.units)


def _spread(judged: Judged, row: ClaimRow) -> str:
    """The interval of the figure or its runs."""
    return spread(row, _interval(judged, row), lambda value: _written(judged, value))


def _interval(judged: Judged, row: ClaimRow) -> str:
    """The interval of the figure; empty for a claim with several comparisons."""
    tests = judged.claim.tests
    return written_interval(tests[0], row) if len(tests) == 1 else ""
