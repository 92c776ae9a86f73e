"""build/claims.csv and build/claim_parts.csv: what the results say of every claim, by machine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import pandas as pd

from analysis.results.store.folders import PUBLISHED
from analysis.results.tables.counters import COUNT_COLUMNS
from analysis.results.tables.evidence import MachineResults, evidence_by_machine
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


def of_claims(judged: ClaimTables) -> pd.DataFrame:
    """The table `claims`."""
    return judged.claims


def of_parts(judged: ClaimTables) -> pd.DataFrame:
    """The table `claim_parts`."""
    return judged.parts


def _verdicts(known: MachineResults, machine: str) -> Iterator[tuple[ClaimRow, list[ClaimPartRow]]]:
    """The row of each claim that is judged on the machine, and the rows of its parts.

    Only runs and profiles that record a claim's bounds judge it; without any, all `known` ones do.
    The figure shown is that of all runs.
    """
    for claim in known.study.claims:
        if claim.on_rows != (machine == PUBLISHED):
            continue
        judges, bound = known, ""
        if claim.tests and machine != PUBLISHED and known.has(claim):
            bound = AFTERWARDS
            naming = known.judging(claim)
            if naming.has(claim):
                judges, bound = naming, BEFORE
        yield _judged(known, judges, claim, machine, bound)


def _judged(
    known: MachineResults, judges: MachineResults, claim: Claim, machine: str, bound: str
) -> tuple[ClaimRow, list[ClaimPartRow]]:
    """The row of the claim and those of its parts; of a single comparison, there are none. Verdicts
    are those of the evidence that `judges`."""
    key: Columns = {"study": known.study.name, "claim": claim.id, "machine": machine}
    published = math.nan if claim.published is None else claim.published
    without = key | _figure_columns(None, None, published)
    if not claim.tests:
        return ClaimRow(**without, verdict=NOT_TESTED, reason=claim.untested), []
    outcomes = [test.judge(judges, claim.published) for test in claim.tests]
    of_all = outcomes
    if judges is not known:
        of_all = [test.judge(known, claim.published) for test in claim.tests]
    units = known.study.units
    judged = [
        key
        | {"verdict": outcome.verdict, "reason": outcome.reason}
        | _figure_columns(
            shown.figure, outcome.figure, published, test.figure_unit(units), test.case
        )
        for test, outcome, shown in zip(claim.tests, outcomes, of_all, strict=True)
    ]
    counted: Columns = {"bound": bound}
    if bound:
        counted |= _counts(known, of_all, "runs", "hosts")
    if bound == BEFORE:
        counted |= _counts(known, outcomes, "judging", "judging_hosts")
    verdict = together(outcome.verdict for outcome in outcomes)
    on_average = together(outcome.on_average or outcome.verdict for outcome in outcomes)
    if on_average == verdict:  # the means decide no more than the figures
        on_average = ""
    if len(judged) == 1:
        return ClaimRow(**judged[0] | counted, on_average=on_average), []
    # No one figure speaks for several comparisons: each has a row, and its words in the reason.
    decisive = sorted(
        range(len(outcomes)), key=lambda index: _decides(claim.tests[index], outcomes[index])
    )
    parts = [
        ClaimPartRow(part=index + 1, comparison=claim.tests[index].title, **judged[index])
        for index in decisive
    ]
    reason = "; ".join(part.sentence(with_case=claim.in_several_cases) for part in parts)
    row = without | counted
    return ClaimRow(**row, verdict=verdict, reason=reason, on_average=on_average), parts


def _counts(
    known: MachineResults, outcomes: Iterable[Outcome], runs: str, hosts: str
) -> Mapping[str, int]:
    """The number of runs that measured any of `outcomes`, and that of their hosts, in the columns
    `runs` and `hosts`."""
    found = frozenset().union(*(outcome.runs for outcome in outcomes))
    return {runs: len(found), hosts: known.hosts_of(found)}


def _figure_columns(
    figure: Figure | None,
    judged: Figure | None,
    published: float,
    unit: str = "",
    case: str = "",
) -> Columns:
    """The columns of both tables from `published` on; `published` is the claim's, `figure` that of
    all runs and `judged` that of those that may judge."""
    none = Figure(math.nan, math.nan, math.nan, published)
    shown, decisive = figure or none, judged or none
    return {
        "published": (figure or decisive).published,
        "measured": shown.value,
        "ci_low": shown.low,
        "ci_high": shown.high,
        "unit": unit,
        "case": case,
        "judged": decisive.value,
        "judged_low": decisive.low,
        "judged_high": decisive.high,
        "by_run": runs_text(shown.by_run),
        "hosts": shown.hosts,
    }


def _decides(test: Comparison, outcome: Outcome) -> tuple[int, float]:
    """Sorts the parts of a claim: those that do not hold first, then by their room to the bound."""
    order = (FAILS, NOT_TESTED, HOLDS).index(outcome.verdict)
    return order, 0.0 if outcome.figure is None else test.room(outcome.figure)
