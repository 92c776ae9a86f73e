"""Summary of a study: its steps on the machine with most evidence, and their limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from analysis.site.facts.basis import Row, is_headline
from analysis.site.facts.rows import MeasuredRow, ModelRow, rows_of
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Variant


@dataclass(frozen=True)
class Step:
    """A variant's time in its shown case, and its speed as a share of the limit's; None if unknown
    or no headline."""

    variant: Variant
    time: MeasuredRow | None
    share: float | None = None


@dataclass(frozen=True)
class Limit:
    """The limit of a journey: the fastest `ceiling`; a `calibrated` rate, that is a variant of
    another study with as many bytes; the prediction of the link `model`, without a variant; or only
    a `reference` to compare with."""

    kind: Literal["ceiling", "calibrated", "model", "reference"]
    variant: Variant | None


@dataclass(frozen=True)
class Journey:
    """Steps, and variants beyond them, that solve the study's problem in the headline case, in
    their order on pages. `first` and `last` are measured: `last` is the study's goal or, if that
    was not measured, the fastest."""

    machine: str
    steps: list[Step]
    first: Step
    last: Step
    limit: Limit | None

    @property
    def measured(self) -> list[MeasuredRow]:
        return [step.time for step in self.steps if step.time is not None]


def machines_by_evidence(facts: StudyFacts) -> list[str]:
    """Machines of a study, by descending evidence: the sum of hosts over all fresh figures, then
    the sum of runs, then the newest run.

    Hosts differ, so one more host for a figure counts as much as one more figure.
    """

    def evidence(machine: str) -> tuple[int, int, str]:
        times = (facts.figures.time(machine, variant) for variant in facts.study.subjects)
        fresh = [row for row in times if row is not None and not row.stale]
        hosts, runs = sum(row.hosts for row in fresh), sum(row.runs for row in fresh)
        return hosts, runs, max((row.run for row in fresh), default="")

    return sorted(facts.machines, key=evidence, reverse=True)


def journey_of(facts: StudyFacts) -> Journey | None:
    """Summary of the study; None if no machine has a step whose figure may be a headline."""
    for machine in machines_by_evidence(facts):
        # Only variants that did the same work are comparable.
        contenders = [
            variant
            for variant in facts.ranking.contenders(machine)
            if _has_headline(facts, variant) and _time(facts, machine, variant) is not None
        ]
        if not contenders:
            continue
        goal = facts.study.goal
        best = next((v for v in contenders if v.name == goal), contenders[0])
        limit = _limit(facts, machine, best)
        # Variants beyond the steps are drawn only if they solve the same problem.
        steps = [
            Step(
                variant,
                _time(facts, machine, variant),
                _share(facts, machine, variant, limit),
            )
            for variant in facts.study.with_role("step", "beyond")
            if variant in contenders or (variant.role == "step" and _has_headline(facts, variant))
        ]
        measured = [step for step in steps if step.time is not None]
        last = next(step for step in measured if step.variant == best)
        return Journey(machine, steps, measured[0], last, limit)
    return None


def _time(facts: StudyFacts, machine: str, variant: Variant) -> MeasuredRow | None:
    """The time in the shown case, if it may be a headline."""
    return _headline(facts.figures.time(machine, variant))


def _headline(row: Row | None) -> Row | None:
    return row if row is not None and is_headline(row) else None


def _has_headline(facts: StudyFacts, variant: Variant) -> bool:
    return variant.case(facts.study.headline) is not None


def _limit(facts: StudyFacts, machine: str, best: Variant) -> Limit | None:
    """The limit of the best step."""
    if (ceiling := facts.figures.reached(machine, best)) is not None:
        return Limit("ceiling", facts.study.variant(ceiling.ceiling))
    if (calibrated := _calibrated(facts, machine, best)) is not None:
        return Limit("calibrated", calibrated[0])
    if _prediction(facts, machine, best) is not None:
        return Limit("model", None)
    references = facts.study.with_role("reference")
    compared = (r for r in references if facts.figures.comparison(machine, best, r) is not None)
    first = next(compared, None)
    return None if first is None else Limit("reference", first)


def _share(facts: StudyFacts, machine: str, variant: Variant, limit: Limit | None) -> float | None:
    if limit is None:
        return None
    if limit.kind == "ceiling" and limit.variant is not None:
        compared = facts.figures.comparison(machine, variant, limit.variant)
        has_headline = _headline(compared) is not None
        return facts.figures.share_of(machine, variant, limit.variant) if has_headline else None
    if limit.kind == "calibrated":
        time, mover = facts.figures.time(machine, variant), _calibrated(facts, machine, variant)
        return mover[1].median / time.median if time is not None and mover is not None else None
    if limit.variant is not None:
        row = _headline(facts.figures.comparison(machine, variant, limit.variant))
        return None if row is None else row.ratio
    prediction = _prediction(facts, machine, variant)
    return None if prediction is None else prediction.predicted / prediction.measured


def _calibrated(
    facts: StudyFacts, machine: str, variant: Variant
) -> tuple[Variant, MeasuredRow] | None:
    """The variant that study.yaml names as `limit`, and its fresh time for as many bytes."""
    named = facts.study.limit
    if named is None or named.study not in facts.inputs.studies:
        return None
    other = StudyFacts(facts.inputs, facts.inputs.studies[named.study])
    mover = other.study.variant(named.variant)
    payload = facts.study.shown_case(variant).payload_bytes
    for case in mover.cases:
        for metric in other.study.metrics_for(mover) if case.payload_bytes == payload else ():
            row = other.figures.find(machine, mover.name, case.id, metric)
            if row is not None and not row.stale:
                return mover, row
    return None


def _prediction(facts: StudyFacts, machine: str, variant: Variant) -> ModelRow | None:
    """The link model's time in the shown case, where the link or translation surely limits it."""
    table = facts.predictions
    case = facts.study.shown_case(variant).id
    is_shown = (table["machine"] == machine) & (table["variant"] == variant.name)
    rows = rows_of(table[is_shown & (table["case"] == case) & table["judged"]], ModelRow)
    return rows[0] if rows else None
