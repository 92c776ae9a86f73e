"""build/claims.csv and build/claim_parts.csv: what the results say of every claim, by machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.results.store.runs import PUBLISHED
from analysis.results.tables.evidence import MachineResults
from analysis.results.tables.rows import ClaimPartRow, ClaimRow, columns, runs_text
from analysis.study import Study
from analysis.study.claims import Claim
from analysis.study.claims.kinds import Comparison
from analysis.study.claims.verdicts import (
    AFTERWARDS,
    BEFORE,
    FAILS,
    HOLDS,
    NOT_TESTED,
    Figure,
    Outcome,
    together,
)


def claim_tables(
    samples: pd.DataFrame,
    studies: Mapping[str, Study],
    published: Mapping[str, pd.DataFrame],
    model: pd.DataFrame,
    counted: pd.DataFrame,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A row for each claim and machine with results of its study, with the columns of ClaimRow, and
    one for each comparison of claims that have several, with those of ClaimPartRow. The parts that
    decide come first.

    `samples` and `published` are as `collect` gives them, `model` is the link model's table of
    predictions, `counted` that of `counts`. A claim that published rows decide alone has one row,
    its machine `published`.
    """
    counted = counted[~counted["stale"].astype(bool)]
    claims: list[ClaimRow] = []
    parts: list[ClaimPartRow] = []
    for study in (study for study in studies.values() if study.claims):
        tables = [table[table["study"] == study.name] for table in (samples, model, counted)]
        for machine in (PUBLISHED, *sorted(tables[0]["machine"].unique())):
            here = [table[table["machine"] == machine] for table in tables]
            known = MachineResults(study, here[0], published[study.name], *here[1:])
            for claim in study.claims:
                if claim.on_rows == (machine == PUBLISHED):
                    row, of_row = _judged(known, claim, machine)
                    claims.append(row)
                    parts += of_row
    return (
        pd.DataFrame(claims, columns=columns(ClaimRow)),
        pd.DataFrame(parts, columns=columns(ClaimPartRow)),
    )


def _judged(
    known: MachineResults, claim: Claim, machine: str
) -> tuple[ClaimRow, list[ClaimPartRow]]:
    """The row of the claim and those of its parts; of a single comparison, there are none.

    Only runs and profiles that record a claim's bounds judge it; without any, all `known` ones do.
    The figure shown is that of all runs.
    """
    published = math.nan if claim.published is None else claim.published
    none = Figure(math.nan, math.nan, math.nan, published)
    row: dict[str, Any] = {"study": known.study.name, "claim": claim.id, "machine": machine}
    row |= {"unit": "", "case": "", **_figures(none, none)}
    if not claim.tests:
        return ClaimRow(**row, verdict=NOT_TESTED, reason=claim.untested), []
    judges, bound = known, ""
    if machine != PUBLISHED and known.has(claim):
        naming = known.judging(claim)
        judges, bound = (naming, BEFORE) if naming.has(claim) else (known, AFTERWARDS)
    outcomes = [test.judge(judges, claim.published) for test in claim.tests]
    of_all = outcomes
    if judges is not known:
        of_all = [test.judge(known, claim.published) for test in claim.tests]
    judged = [
        {
            "verdict": outcome.verdict,
            "reason": outcome.reason,
            "unit": test.figure_unit(known.study.units),
            "case": test.case,
            **_figures(shown.figure or none, outcome.figure or none),
        }
        for test, outcome, shown in zip(claim.tests, outcomes, of_all, strict=True)
    ]
    parts = []
    if len(judged) == 1:
        row |= judged[0]
    else:
        # No one figure speaks for several comparisons: each has a row, and its words in the reason.
        made = [
            ClaimPartRow(**row | values, part=number, comparison=test.title)
            for number, (test, values) in enumerate(zip(claim.tests, judged, strict=True), start=1)
        ]
        rooms = [_room(*pair) for pair in zip(claim.tests, outcomes, strict=True)]
        parts = sorted(made, key=lambda part: rooms[part.part - 1])
        words = [part.sentence(with_case=claim.in_several_cases) for part in parts]
        verdict = together(outcome.verdict for outcome in outcomes)
        row |= {"verdict": verdict, "reason": "; ".join(words)}
    on_average = together(outcome.on_average or outcome.verdict for outcome in outcomes)
    if on_average != row["verdict"]:  # else the means decide no more than the figures
        row["on_average"] = on_average
    if bound:
        row["runs"], row["hosts"] = _basis(known, of_all)
    if bound == BEFORE:
        row["judging"], row["judging_hosts"] = _basis(known, outcomes)
    return ClaimRow(**row, bound=bound), parts


def _basis(known: MachineResults, outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """The number of runs that measured any of `outcomes`, and that of their hosts."""
    measured = frozenset[str]().union(*(outcome.runs for outcome in outcomes))
    return len(measured), known.hosts_of(measured)


def _figures(of_all: Figure, decisive: Figure) -> dict[str, Any]:
    """The columns of figures of both tables: that of all runs, and that of those that judge."""
    return {
        "published": of_all.published,
        "measured": of_all.value,
        "ci_low": of_all.low,
        "ci_high": of_all.high,
        "judged": decisive.value,
        "judged_low": decisive.low,
        "judged_high": decisive.high,
        "by_run": runs_text(of_all.by_run),
        "hosts": of_all.hosts,
    }


def _room(test: Comparison, outcome: Outcome) -> tuple[int, float]:
    """Sorts the parts of a claim: those that do not hold first, then by their room to the bound."""
    order = (FAILS, NOT_TESTED, HOLDS).index(outcome.verdict)
    return order, 0.0 if outcome.figure is None else test.room(outcome.figure)
