"""What the ledger and the pages of studies embed: every claim with its verdict on every machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from analysis.claims import Claim
from analysis.claims.verdicts import FAILS, HOLDS, NOT_TESTED
from analysis.facts.points import Context, Row, anchor
from analysis.quantities import INTERVAL
from analysis.report.html import Markup, cell, code, grouped_table, link
from analysis.store.results import PUBLISHED
from analysis.study import Study

COLUMNS = ["on", "measured", INTERVAL, "verdict", "reason", "samples"]
UNMEASURED = "no machine has been measured"
VERDICTS = (HOLDS, FAILS, NOT_TESTED)
UNFOLDED = 4
"""Up to so many comparisons of one claim stand in view."""


def ledger(contexts: Mapping[str, Context], pages: Mapping[str, str], root: str) -> str:
    """The claims of every study that has some; `pages` are addresses by study. Markdown."""
    parts = []
    for name, context in contexts.items():
        if context.study.claims:
            title = context.study.title
            parts.append(f"## [{title}]({pages[name]})" if name in pages else f"## {title}")
            parts.append(claims_of(context, root))
    return "\n\n".join(parts) or "No study has claims yet."


def claims_of(context: Context, root: str) -> str:
    """The write-up's claims and then ours, each kind counted and listed; Markdown and HTML."""
    claims = context.study.claims
    kinds = {
        "Of the write-up": [claim for claim in claims if not claim.ours],
        "Ours": [claim for claim in claims if claim.ours],
    }
    parts = [_counted(context, title, own, root) for title, own in kinds.items() if own]
    return "\n\n".join(parts) or "This study tests no claims."


def _counted(context: Context, title: str, claims: list[Claim], root: str) -> str:
    """How often `claims` hold on every machine, then each of them; Markdown and HTML."""
    groups = [(claim, _rows(context, claim)) for claim in claims]
    bodies = [
        (_heading(context.study, claim, rows[0]), [_cells(context, claim, r, root) for r in rows])
        for claim, rows in groups
    ]
    count = _count([row for _, rows in groups for row in rows])
    return f"**{title}:**\n\n{count}\n\n{grouped_table(COLUMNS, bodies, numeric=COLUMNS[1:3])}"


def _rows(context: Context, claim: Claim) -> list[Row]:
    """The claim's rows of claims.csv; where it has none, one that says why."""
    own = context.claims.get(claim.id, [])
    reason = claim.untested or UNMEASURED
    return own or [{"machine": "", "verdict": NOT_TESTED, "reason": reason}]


def _count(rows: list[Row]) -> str:
    """`On box: holds 5, not tested 2.` for every machine."""
    places = {PUBLISHED: "By the published rows alone", "": "On no machine yet"}
    sentences = []
    for machine in dict.fromkeys(row["machine"] for row in rows):
        verdicts = [row["verdict"] for row in rows if row["machine"] == machine]
        counts = [f"{name} {verdicts.count(name)}" for name in VERDICTS if name in verdicts]
        place = places.get(machine, f"On {machine}")
        sentences.append(f"- {place}: {', '.join(counts)}.")
    return "\n".join(sentences)


def _heading(study: Study, claim: Claim, row: Row) -> Markup:
    """The claim in our words, and the write-up's figure where there is one."""
    figure = row.get("published")
    published = _written(study, claim, claim.published if figure is None else figure)
    told = f" Published: {cell(published)}." if published else ""
    return Markup(f"{cell(claim.says)}<span>{told} {code(claim.id)}</span>")


def _cells(context: Context, claim: Claim, row: Row, root: str) -> list[object]:
    """What COLUMNS say of one row of claims.csv."""
    machine = str(row["machine"])
    verdict = str(row["verdict"])
    parts = context.claim_parts.get((claim.id, machine), [])
    sentences = [part.sentence(with_case=claim.in_several_cases) for part in parts]
    return [
        {PUBLISHED: "published rows", "": "no machine"}.get(machine, machine),
        _written(context.study, claim, row.get("measured")),
        _interval(context.study, claim, row),
        Markup(f'<span class="hp-verdict{" hp-fails" * (verdict == FAILS)}">{verdict}</span>'),
        _folded(sentences or [str(row["reason"])]),
        _samples(context, claim, machine, root),
    ]


def _folded(parts: list[str]) -> Markup:
    """The parts one below the other; of many only the first is open to view."""
    lines = "<br>".join(cell(part) for part in parts)
    if len(parts) <= UNFOLDED:
        return Markup(lines)
    first, rest = cell(parts[0]), "<br>".join(cell(part) for part in parts[1:])
    more = f"<summary>and {len(parts) - 1} more</summary>{rest}"
    return Markup(f'{first}<details class="hp-more">{more}</details>')


def _samples(context: Context, claim: Claim, machine: str, root: str) -> Markup:
    """The variants compared, each leading to its samples on this machine where there are some."""
    study = context.study.name
    names = []
    for variant in claim.variants:
        known = (machine, study, variant) in context.inputs.provenance
        address = f"{root}data/#{anchor(machine, study, variant)}"
        names.append(link(address, code(variant)) if known else code(variant))
    return Markup(" ".join(names))


def _written(study: Study, claim: Claim, value: Any) -> str:
    """A figure as its kind of comparison is written; empty where there is none."""
    if value is None or math.isnan(value):
        return ""
    return claim.write(float(value), _units(study))


def _interval(study: Study, claim: Claim, row: Row) -> str:
    low, high = row.get("ci_low"), row.get("ci_high")
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    if claim.on_rows and low == high:
        return ""
    (test,) = claim.tests
    return test.write_interval(low, high, test.figure_unit(_units(study)))


def _units(study: Study) -> dict[str, str]:
    return {name: metric.unit for name, metric in study.metrics.items()}
