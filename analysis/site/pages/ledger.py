"""Claims with their verdicts on every machine, for the ledger and the pages of studies."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from markupsafe import Markup

from analysis.base.errors import require_known
from analysis.base.quantities import listing, runs_phrase, with_interval
from analysis.site.facts.addresses import claim_anchor, samples_address
from analysis.site.facts.basis import FEW, SPREAD, is_enough, spread
from analysis.site.facts.findings import written_interval
from analysis.site.facts.rows import ClaimRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.facts.verdicts import PUBLISHED, UNDECIDED, chosen_after, judges_phrase
from analysis.site.pages.badges import badge, outcome
from analysis.site.pages.fragments import Place, root_from
from analysis.site.pages.html import (
    NO_HTML,
    code,
    folded,
    joined,
    link,
    listed,
    paragraph,
    table,
    without_empty,
)
from analysis.site.pages.templates import macros
from analysis.study.claims import Claim
from analysis.study.claims.kinds import Bounded
from analysis.study.claims.verdicts import AFTERWARDS, FAILS, HOLDS, NOT_TESTED

_CLAIMS: Final = macros("claim.html")
COLUMNS: Final = ["on", "measured", SPREAD, "runs", "verdict", "reason", "samples"]
UNMEASURED: Final = "no machine has been measured"
SUMMED: Final = {
    HOLDS: ("holds", "hold"),
    FAILS: ("does not hold", "do not hold"),
    UNDECIDED: ("is undecided", "are undecided"),
    NOT_TESTED: ("is not tested", "are not tested"),
}
"""Verb phrases of one verdict, and of several."""
CHOSEN_AFTER: Final = "threshold chosen after seeing the data"
"""Label of the count of verdicts whose runs did not record the threshold."""
SURPRISES: Final = 8
"""Maximum number of claims at the top of the ledger."""
IN_VIEW: Final = 20
"""Maximum number of unfolded claims of one kind on the page of a study."""
UNFOLDED: Final = 4
"""Maximum number of unfolded comparisons of one claim."""


@dataclass(frozen=True, eq=False)
class Judged:
    """A claim with its rows of claims.csv, one per machine, the displayed verdict of each, and
    `in 1 run on 1 host` for a verdict that uses few runs."""

    claim: Claim
    rows: Sequence[tuple[ClaimRow, str, str]]

    @property
    def verdicts(self) -> list[tuple[str, str]]:
        """Verdict and few runs per machine; `not tested` for a claim without rows."""
        return [(verdict, few) for _, verdict, few in self.rows] or [(NOT_TESTED, "")]

    @property
    def is_untested(self) -> bool:
        """Whether no machine decides the claim or leaves it undecided."""
        return {*self.verdicts} == {(NOT_TESTED, "")}

    @property
    def surprise(self) -> tuple[float, ClaimRow | None]:
        """The largest distance of an interval from a bound that it misses, as a logarithm, and the
        row; 0 if no claim with one bound is missed in enough runs."""
        test = self.claim.tests[0] if len(self.claim.tests) == 1 else None
        if not isinstance(test, Bounded) or test.bound.value <= 0:
            return 0.0, None
        return max(
            (
                (max(math.log(row.ci_low / bound), math.log(bound / row.ci_high)), row)
                for bound in [test.bound.value]
                for row, verdict, few in self.rows
                if verdict == FAILS and not few and row.ci_low > 0 and row.ci_high > 0
            ),
            key=lambda one: one[0],
            default=(0.0, None),
        )


def ledger(studies: Mapping[str, StudyFacts], pages: Mapping[str, str], place: Place) -> str:
    """Claims of every study that has any; `pages` are addresses by study. Markdown."""
    parts = []
    verdicts: list[tuple[str, str]] = []
    on_average: list[tuple[str, str]] = []
    for name, facts in studies.items():
        if facts.study.claims:
            title = facts.study.title
            parts.append(f"## {title} {{: #{name} .fold }}")
            if name in pages:
                parts.append(f"[The study]({pages[name]})")
            parts.append(claims_of(facts, place, most=len(facts.study.claims)))
            for claim in facts.study.claims:
                judged = _judge(facts, claim)
                verdicts += judged.verdicts
                on_average += [(row.on_average, "") for row, *_ in judged.rows if row.on_average]
    if not parts:
        return "No study has claims yet."
    counted = f"{len(verdicts)} verdicts, one per claim and machine: {_sum_up(verdicts)}."
    if on_average:
        undecided = sum(verdict == UNDECIDED for verdict, _ in verdicts)
        are = "is" if len(on_average) == 1 else "are"
        counted += (
            f" {len(on_average)} of the {undecided} undecided {are} decided on average over hosts:"
            f" {_sum_up(on_average)}."
        )
    names = json.dumps(next(iter(studies.values())).inputs.machine_names, ensure_ascii=False)
    farthest = _farthest(studies)
    return "\n\n".join([_CLAIMS.counted(names, FEW, counted), *farthest, *parts])


def _farthest(studies: Mapping[str, StudyFacts]) -> list[str]:
    """The claims that miss their bound by most, each with its figure; Markdown."""
    found = [
        (facts, judged, *judged.surprise)
        for facts in studies.values()
        for judged in (_judge(facts, claim) for claim in facts.study.claims)
    ]
    found.sort(key=lambda one: one[2], reverse=True)
    items = [
        joined(
            " ",
            [
                link(f"#{claim_anchor(facts.study.name, judged.claim.id)}", judged.claim.says),
                Markup("Measured: {}.").format(
                    with_interval(
                        f"{_written(facts, judged.claim, row.measured)} on {_where(facts, row)}",
                        _spread(facts, judged.claim, row),
                    )
                ),
            ],
        )
        for facts, judged, distance, row in found[:SURPRISES]
        if distance > 0 and row is not None
    ]
    return ["**Farthest from what was claimed:**", listed("ol", items)] if items else []


def _sum_up(verdicts: Sequence[tuple[str, str]]) -> str:
    """`61 hold (5 in fewer than 3 runs or 2 hosts), 1 does not hold and 7 are not tested`."""
    parts = []
    for name, words in SUMMED.items():
        found = [few for verdict, few in verdicts if verdict == name]
        few = sum(map(bool, found))
        if found:
            counted = f"{len(found)} {words[len(found) != 1]}"
            if few == len(found):
                parts.append(f"{counted} in {FEW}")
            else:
                parts.append(with_interval(counted, f"{few} in {FEW}" if few else ""))
    return listing(parts)


def claims_of(facts: StudyFacts, place: Place, ids: Sequence[str] = (), most: int = IN_VIEW) -> str:
    """The write-up's claims and then ours, each kind counted and listed, and folded if it has more
    than `most`; Markdown and HTML.

    `ids` selects claims, which are then not counted; untested ones are only named, because the list
    of all claims has their reasons. HotpathError names an unknown id.
    """
    known = [claim.id for claim in facts.study.claims]
    for one in ids:
        require_known(f"claims of {facts.study.name}", one, known)
    judged = [_judge(facts, claim) for claim in facts.study.claims if not ids or claim.id in ids]
    untested = [one for one in judged if ids and one.is_untested]
    shown = [one for one in judged if one not in untested]
    theirs = [one for one in shown if not one.claim.ours]
    ours = [one for one in shown if one.claim.ours]
    parts: list[str] = []
    for title, claims in (("Of the write-up", theirs), ("Ours", ours)):
        if not claims:
            continue
        # Selected claims need a title only if they are the write-up's.
        if not ids or claims is theirs:
            parts.append(f"**{title}:**")
        if not ids or any(map(_is_fitted, claims)):
            parts.append(_count(facts, claims))
        # Only the complete list has anchors, because an anchor must be unique on a page.
        boxes = {one: _folded(facts, one, place, anchored=not ids) for one in claims}
        tested = [box for one, box in boxes.items() if not one.is_untested]
        if tested:
            lines = _CLAIMS.claims(tested)
            is_long = len(tested) > most
            parts.append(folded(f"The {len(tested)} claims", lines) if is_long else lines)
        if left := [box for one, box in boxes.items() if one.is_untested]:
            parts.append(folded(f"{len(left)} not tested", _CLAIMS.claims(left)))
    if untested:
        names = (
            link(
                f"{place.root}ledger/#{claim_anchor(facts.study.name, one.claim.id)}",
                one.claim.says,
            )
            for one in untested
        )
        parts.append(f"Not tested: {joined(' ', names)}")
    return "\n\n".join(parts) or "This study tests no claims."


def _judge(facts: StudyFacts, claim: Claim) -> Judged:
    rows = facts.verdicts.by_claim.get(claim.id, [])
    verdicts = facts.verdicts
    return Judged(claim, [(row, verdicts.shown(row), verdicts.in_few(row)) for row in rows])


def _count(facts: StudyFacts, claims: Sequence[Judged]) -> str:
    """`On box: 5 hold and 2 are not tested.`, a list item per machine."""
    verdicts: dict[str, list[tuple[str, str]]] = {}
    for judged in claims:
        if not judged.rows:
            verdicts.setdefault("Not measured on any machine", []).append((NOT_TESTED, ""))
        for row, *verdict in judged.rows:
            verdicts.setdefault(_counted_at(facts, row), []).append((verdict[0], verdict[1]))
    return "\n".join(f"- {place}: {_sum_up(found)}." for place, found in verdicts.items())


def _is_fitted(judged: Judged) -> bool:
    """Whether the threshold of some verdict was chosen after the runs."""
    return any(row.bound == AFTERWARDS and row.verdict != NOT_TESTED for row, *_ in judged.rows)


def _counted_at(facts: StudyFacts, row: ClaimRow) -> str:
    """Label under which a verdict is counted; separate for thresholds chosen after the runs."""
    if row.machine == PUBLISHED:
        return "From the published figures alone"
    is_fitted = row.bound == AFTERWARDS and row.verdict != NOT_TESTED
    where = f"On {facts.inputs.called(row.machine)}"
    return f"{where}, {CHOSEN_AFTER}" if is_fitted else where


def _folded(facts: StudyFacts, judged: Judged, place: Place, *, anchored: bool) -> Markup:
    """A line with the claim and its verdicts, which unfolds into its figures and badge."""
    study, claim = facts.study.name, judged.claim
    path = f"evidence/{study}/claims/{claim.id}.html"
    root = root_from(path)
    picture = f"badges/{study}/{claim.id}.svg"
    place.write(picture, badge(claim.id, judged.verdicts))
    anchor = claim_anchor(study, claim.id)
    address = f"{root}ledger/#{anchor}"
    embedded = f"[![{claim.id}: {outcome(judged.verdicts)}]({root}{picture})]({address})"
    columns, lines = without_empty(COLUMNS, _lines(facts, judged, root))
    content = NO_HTML.join(
        [
            paragraph(_origin(facts, judged)),
            table(columns, lines, numeric=COLUMNS[1:3]),
            _CLAIMS.badge(root + picture, outcome(judged.verdicts), embedded),
        ]
    )
    summary = _CLAIMS.summary(claim.says, _verdicts(facts, judged))
    return place.folded(
        path,
        summary,
        claim.says,
        content,
        anchor=anchor if anchored else "",
        study=study,
        by="ours" if claim.ours else "write-up",
        verdicts=json.dumps(
            [[_place(row), verdict, bool(few)] for row, verdict, few in judged.rows]
        ),
    )


def _verdicts(facts: StudyFacts, judged: Judged) -> Markup:
    """Each verdict with its machines and their measured figures. That on average over hosts is in
    the reason, which is folded."""
    machines: dict[str, list[str]] = {}
    for row, verdict, few in judged.rows:
        figure = _written(facts, judged.claim, row.measured)
        spread = _spread(facts, judged.claim, row)
        notes = "; ".join(filter(None, [spread, judges_phrase(row) or _runs(row)]))
        where = " ".join(filter(None, [_where(facts, row), few]))
        figures = with_interval(": ".join(filter(None, [where, figure])), notes)
        machines.setdefault(verdict, []).append(figures)
    if not machines:
        return _verdict(NOT_TESTED)
    return joined(
        " ",
        (
            Markup("{} on {}").format(_verdict(verdict), listing(machines[verdict]))
            for verdict in SUMMED
            if verdict in machines
        ),
    )


def _where(facts: StudyFacts, row: ClaimRow) -> str:
    return facts.inputs.called(_place(row))


def _place(row: ClaimRow) -> str:
    """Name of the machine in the ledger's addresses."""
    return "published rows" if row.machine == PUBLISHED else row.machine


def _origin(facts: StudyFacts, judged: Judged) -> Markup:
    """The claim's id, its comparison if it has only one, and the published figure, if any."""
    claim = judged.claim
    published = judged.rows[0][0].published if judged.rows else claim.published
    written = _written(facts, claim, math.nan if published is None else published)
    shown = f" Published: {written}." if written else ""
    compared = f" Compared: {claim.tests[0].title}." if len(claim.tests) == 1 else ""
    return Markup("{}.{}{}").format(code(claim.id), compared, shown)


def _lines(facts: StudyFacts, judged: Judged, root: str) -> list[list[object]]:
    """Cells of COLUMNS for the claim, a line per machine."""
    claim = judged.claim
    if not judged.rows:
        reason = claim.untested or UNMEASURED
        verdict = _verdict(NOT_TESTED)
        return [["no machine", "", "", "", verdict, reason, _samples(facts, claim, "", root)]]
    return [
        [
            _where(facts, row),
            _written(facts, claim, row.measured),
            _spread(facts, claim, row),
            judges_phrase(row) or _runs(row),
            _verdict(verdict, ", ".join(filter(None, [few, chosen_after(row)]))),
            _reason(facts, claim, row),
            _samples(facts, claim, row.machine, root, row.case),
        ]
        for row, verdict, few in judged.rows
    ]


def _verdict(verdict: str, mark: str = "") -> Markup:
    kind = {HOLDS: " hp-holds", FAILS: " hp-fails"}.get(verdict, "")
    return _CLAIMS.verdict(verdict, kind, mark)


def _reason(facts: StudyFacts, claim: Claim, row: ClaimRow) -> object:
    """Reason of a verdict. For a claim with several comparisons, one line each; if there are many,
    all but the first are folded."""
    parts = facts.verdicts.parts.get((claim.id, row.machine))
    if not parts:
        return ", ".join(filter(None, [_judged_by_few(facts, claim, row), row.reason]))
    first, *rest = (part.sentence(with_case=claim.in_several_cases) for part in parts)
    if len(parts) <= UNFOLDED:
        return joined("<br>", [first, *rest])
    return Markup("{}{}").format(first, folded(f"and {len(rest)} more", joined("<br>", rest)))


def _runs(row: ClaimRow) -> str:
    return runs_phrase(row.runs, row.hosts) if row.runs else ""


def _judged_by_few(facts: StudyFacts, claim: Claim, row: ClaimRow) -> str:
    """The figure of the runs that the verdict uses, if these are not all; else empty."""
    if not judges_phrase(row) or len(claim.tests) != 1 or math.isnan(row.judged):
        return ""
    few = replace(row, measured=row.judged, ci_low=row.judged_low, ci_high=row.judged_high)
    interval = _interval(claim, few) if is_enough(row.judging, row.judging_hosts) else ""
    figure = with_interval(_written(facts, claim, row.judged), interval)
    return f"in the runs that the verdict uses: {figure}"


def _samples(facts: StudyFacts, claim: Claim, machine: str, root: str, case: str = "") -> Markup:
    """The compared variants, each with a link to its samples of `case` on this machine if there are
    any."""
    study = facts.study.name
    names = []
    for variant in claim.variants:
        is_measured = (machine, study, variant) in facts.inputs.runs_of
        address = f"{root}{samples_address(machine, study, variant, case)}"
        names.append(link(address, code(variant)) if is_measured else code(variant))
    return joined(" ", names)


def _written(facts: StudyFacts, claim: Claim, value: float) -> str:
    """A figure in the format of its kind of comparison; empty for NaN."""
    return "" if math.isnan(value) else claim.write(value, facts.study.units)


def _spread(facts: StudyFacts, claim: Claim, row: ClaimRow) -> str:
    """The interval of the figure or its runs."""
    return spread(row, _interval(claim, row), lambda value: _written(facts, claim, value))


def _interval(claim: Claim, row: ClaimRow) -> str:
    """The interval of the figure; empty for a claim with several comparisons."""
    return written_interval(claim.tests[0], row) if len(claim.tests) == 1 else ""
