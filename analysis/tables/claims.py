"""build/claims.csv and build/claim_parts.csv: what the results say of every claim, by machine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Final

import pandas as pd

from analysis.claims import Claim
from analysis.claims.comparison import Comparison
from analysis.claims.verdicts import (
    AFTERWARDS,
    BEFORE,
    FAILS,
    HOLDS,
    NOT_TESTED,
    Figure,
    Outcome,
    together,
)
from analysis.store.folders import PUBLISHED
from analysis.study import Study
from analysis.tables.counters import COUNT_COLUMNS
from analysis.tables.evidence import MachineResults, evidence_by_machine
from analysis.tables.rows import ClaimPartRow, ClaimRow, columns

CLAIM_COLUMNS: Final = columns(ClaimRow)
PART_COLUMNS: Final = columns(ClaimPartRow)
UNCOUNTED: Final = pd.DataFrame(columns=COUNT_COLUMNS)

Columns = dict[str, Any]
"""Some of the columns of a row."""


@dataclass(frozen=True)
class ClaimTables:
    """In CLAIM_COLUMNS a row a claim, and in PART_COLUMNS a row a comparison of each claim that is
    made up of several, those first that decide."""

    claims: pd.DataFrame
    parts: pd.DataFrame


def claim_tables(
    samples: pd.DataFrame,
    studies: Mapping[str, Study],
    published: Mapping[str, pd.DataFrame],
    model: pd.DataFrame,
    counted: pd.DataFrame = UNCOUNTED,
) -> ClaimTables:
    """A row a claim and machine that has anything of its study, and the parts of those claims.

    `samples` and `published` are as `collect` gives them, `model` is the link model's table of
    predictions, `counted` that of `fresh_counts`. A claim that published rows decide alone has one
    row, its machine `published`.
    """
    claims: list[ClaimRow] = []
    parts: list[ClaimPartRow] = []
    for study in studies.values():
        if not study.claims:
            continue
        of_study = (table[table["study"] == study.name] for table in (samples, model, counted))
        by_machine = evidence_by_machine(study, published[study.name], *of_study)
        for machine, known in by_machine.items():
            for row, of_row in _verdicts(known, machine):
                claims.append(row)
                parts += of_row
    return ClaimTables(
        claims=pd.DataFrame(map(asdict, claims), columns=CLAIM_COLUMNS),
        parts=pd.DataFrame(map(asdict, parts), columns=PART_COLUMNS),
    )


def _verdicts(known: MachineResults, machine: str) -> Iterator[tuple[ClaimRow, list[ClaimPartRow]]]:
    """The row of each claim that is judged on the machine, and those of its parts.

    Only runs and profiles that began after a claim's bounds were set judge it; all that are `known`
    where there are no such.
    """
    of_runs = cache(known.of_runs)  # bounds are set at many moments, and few runs lie between
    for claim in known.study.claims:
        if claim.on_rows != (machine == PUBLISHED):
            continue
        evidence, bound = known, ""
        if claim.tests and machine != PUBLISHED and known.has(claim):
            bound = AFTERWARDS
            if claim.bounds:
                set_at = claim.bounds.set_at
                younger = of_runs(frozenset(run for run in known.runs if run > set_at))
                if claim.on_counters:
                    later = known.counted[known.counted["at"] > set_at]
                    younger = replace(younger, counted=later)
                if younger.has(claim):
                    evidence, bound = younger, BEFORE
        row, parts = _judged(evidence, claim, machine)
        if bound and claim.bounds:
            row = replace(row, commit=claim.bounds.commit, set_at=claim.bounds.set_at)
        yield replace(row, bound=bound), parts


def _judged(
    evidence: MachineResults, claim: Claim, machine: str
) -> tuple[ClaimRow, list[ClaimPartRow]]:
    """The row of the claim and those of its parts; of a single comparison, there are none."""
    key: Columns = {"study": evidence.study.name, "claim": claim.id, "machine": machine}
    published = math.nan if claim.published is None else claim.published
    without = key | _figure_columns(None, published)
    if not claim.tests:
        return ClaimRow(**without, verdict=NOT_TESTED, reason=claim.untested), []
    outcomes = [test.judge(evidence, claim.published) for test in claim.tests]
    units = evidence.study.units
    judged = [
        key
        | {"verdict": outcome.verdict, "reason": outcome.reason}
        | _figure_columns(outcome.figure, published, test.figure_unit(units), test.case)
        for test, outcome in zip(claim.tests, outcomes, strict=True)
    ]
    verdict = together(outcome.verdict for outcome in outcomes)
    on_average = together(outcome.on_average or outcome.verdict for outcome in outcomes)
    if on_average == verdict:  # the means decide no more than the figures
        on_average = ""
    if len(judged) == 1:
        return ClaimRow(**judged[0], on_average=on_average), []
    # No one figure speaks for several comparisons: each has a row, and its words in the reason.
    decisive = sorted(
        range(len(outcomes)), key=lambda index: _decides(claim.tests[index], outcomes[index])
    )
    parts = [
        ClaimPartRow(part=index + 1, comparison=claim.tests[index].title, **judged[index])
        for index in decisive
    ]
    reason = "; ".join(part.sentence(with_case=claim.in_several_cases) for part in parts)
    return ClaimRow(**without, verdict=verdict, reason=reason, on_average=on_average), parts


def _figure_columns(
    figure: Figure | None, published: float, unit: str = "", case: str = ""
) -> Columns:
    """The columns of both tables from `published` on; `published` is the claim's."""
    if figure is None:
        figure = Figure(math.nan, math.nan, math.nan, published)
    return {
        "published": figure.published,
        "measured": figure.value,
        "ci_low": figure.low,
        "ci_high": figure.high,
        "unit": unit,
        "case": case,
    }


def _decides(test: Comparison, outcome: Outcome) -> tuple[int, float]:
    """Sorts the parts of a claim: those that do not hold first, then by their room to the bound."""
    order = (FAILS, NOT_TESTED, HOLDS).index(outcome.verdict)
    return order, 0.0 if outcome.figure is None else test.room(outcome.figure)
