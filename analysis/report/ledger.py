"""What the ledger and the pages of studies embed: every claim with its verdict on every machine."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.claims import Claim, unit_of
from analysis.report.html import Markup, code, link, table
from analysis.report.points import Context, Row, anchor
from analysis.report.quantities import (
    INTERVAL,
    digits,
    percent,
    quantity,
    quantity_interval,
    ratio,
    ratio_interval,
)
from analysis.results.claims import FAILS, HOLDS, NOT_TESTED
from analysis.results.store import PUBLISHED
from analysis.study import Study

COLUMNS = ["claim", "what is said", "published", "on", "measured", INTERVAL, "verdict", "reason"]
UNMEASURED = "no machine has been measured"
VERDICTS = (HOLDS, FAILS, NOT_TESTED)


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
    """How many of the study's claims hold on every machine, and a row for each; Markdown."""
    if not context.study.claims:
        return "This study tests no claims."
    rows = [(claim, row) for claim in context.study.claims for row in _rows(context, claim)]
    cells: list[list[object]] = []
    for index, (claim, row) in enumerate(rows):
        is_first = index == 0 or rows[index - 1][0] is not claim
        told = [code(claim.id), claim.says, _published(context.study, claim, row)]
        cells.append([*(told if is_first else ["", "", ""]), *_verdict(context, claim, row, root)])
    columns = [*COLUMNS, "samples"]
    written = table(columns, cells, numeric=["published", "measured", INTERVAL])
    return "\n\n".join([_count(rows), written])


def _rows(context: Context, claim: Claim) -> list[Row]:
    """The claim's rows of claims.csv; where it has none, one that says why."""
    own = context.claims.get(claim.id, [])
    reason = claim.untested or UNMEASURED
    return own or [{"machine": "", "verdict": NOT_TESTED, "reason": reason}]


def _count(rows: list[tuple[Claim, Row]]) -> str:
    """`On box: holds 5, not tested 2.` for every machine."""
    places = {PUBLISHED: "By the published rows alone", "": "On no machine yet"}
    sentences = []
    for machine in dict.fromkeys(row["machine"] for _, row in rows):
        verdicts = [row["verdict"] for _, row in rows if row["machine"] == machine]
        counts = [f"{name} {verdicts.count(name)}" for name in VERDICTS if name in verdicts]
        place = places.get(machine, f"On {machine}")
        sentences.append(f"- {place}: {', '.join(counts)}.")
    return "\n".join(sentences)


def _verdict(context: Context, claim: Claim, row: Row, root: str) -> list[object]:
    """The cells from the machine on."""
    machine = str(row["machine"])
    verdict = str(row["verdict"])
    place = {PUBLISHED: "published rows", "": "no machine"}.get(machine, machine)
    return [
        place,
        _written(context.study, claim, row.get("measured")),
        _interval(context.study, claim, row),
        Markup(f"<strong>{verdict}</strong>") if verdict == FAILS else verdict,
        "" if pd.isna(row["reason"]) else row["reason"],
        _samples(context, claim, machine, root),
    ]


def _samples(context: Context, claim: Claim, machine: str, root: str) -> Markup:
    """The variants compared, each leading to its samples on this machine where there are some."""
    study = context.study.name
    names = []
    for variant in claim.variants:
        known = (machine, study, variant) in context.inputs.provenance
        address = f"{root}data/#{anchor(machine, study, variant)}"
        names.append(link(address, code(variant)) if known else code(variant))
    return Markup(" ".join(names))


def _published(study: Study, claim: Claim, row: Row) -> str:
    figure = row.get("published")
    return _written(study, claim, claim.published if figure is None else figure)


def _written(study: Study, claim: Claim, value: Any) -> str:
    """A figure as its kind of comparison is written; empty where there is none."""
    if value is None or math.isnan(value):
        return ""
    if len(claim.tests) != 1:
        return digits(float(value))
    match claim.tests[0].kind:
        case "figure":
            return quantity(float(value), _unit(study, claim))
        case "share" | "model_share" | "printed_share":
            return percent(float(value))
    return ratio(float(value))


def _interval(study: Study, claim: Claim, row: Row) -> str:
    low, high = row.get("ci_low"), row.get("ci_high")
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return ""
    if claim.on_rows and low == high:
        return ""
    match claim.tests[0].kind:
        case "figure":
            return quantity_interval(low, high, _unit(study, claim))
        case "share" | "model_share" | "printed_share":
            return f"{percent(low)} to {percent(high)}"
    return ratio_interval(low, high)


def _unit(study: Study, claim: Claim) -> str:
    units = {name: metric.unit for name, metric in study.metrics.items()}
    return unit_of(claim.tests[0], units)
