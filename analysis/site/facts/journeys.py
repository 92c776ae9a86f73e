"""Summary of a study: its steps on the machine with most evidence, and their limit."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
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
    a `reference` to compare with. `clock` is that of its metric, if this is not the journey's."""

    kind: Literal["ceiling", "calibrated", "model", "reference"]
    variant: Variant | None
    clock: str = ""


@dataclass(frozen=True)
class Journey:
    """Steps, and variants beyond them, that solve the study's problem in the headline case, in
    their order on pages. All times and ratios are by `metric`; `left_out` are the steps with other
    times only. `first` and `last` are measured: `last` is the study's goal or, if that was not
    measured, the fastest."""

    machine: str
    metric: str
    steps: list[Step]
    left_out: list[Variant]
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
    return next(filter(None, (_on(facts, one) for one in machines_by_evidence(facts))), None)


def _on(facts: StudyFacts, machine: str) -> Journey | None:
    """Summary of the study on one machine."""
    figures = facts.figures
    in_headline = [
        one for one in facts.study.with_role("step", "beyond") if _has_headline(facts, one)
    ]
    # Only variants that did the same work are comparable.
    solving = [one for one in facts.ranking.solving(machine) if one in in_headline]
    shown = [one for one in in_headline if one.role == "step" or one in solving]
    metric = figures.shared_metric(machine, shown)
    times = {one: _headline(figures.metric(machine, one, metric)) for one in shown}
    contenders = [(row.median, one) for one, row in times.items() if row and one in solving]
    if not contenders:
        return None
    by_time = [one for _, one in sorted(contenders, key=itemgetter(0))]
    best = next((one for one in by_time if one.name == facts.study.goal), by_time[0])
    limit = _limit(facts, machine, best, metric)
    left_out = [
        one
        for one in shown
        if figures.metric(machine, one, metric) is None and _headline(figures.time(machine, one))
    ]
    steps = [
        Step(one, row, _share(facts, machine, one, metric, limit))
        for one, row in times.items()
        if one not in left_out and (row or one.role == "step")
    ]
    first = next(step for step in steps if step.time is not None)
    last = next(step for step in steps if step.variant == best)
    return Journey(machine, metric, steps, left_out, first, last, limit)


def _headline(row: Row | None) -> Row | None:
    return row if row is not None and is_headline(row) else None


def _has_headline(facts: StudyFacts, variant: Variant) -> bool:
    return variant.case(facts.study.headline) is not None


def _limit(facts: StudyFacts, machine: str, best: Variant, metric: str) -> Limit | None:
    """The limit of the best step."""
    figures, case = facts.figures, facts.study.shown_case(best)
    if (ceiling := figures.limit_share(machine, best, case, metric)) is not None:
        return Limit("ceiling", facts.study.variant(ceiling.ceiling))
    if (calibrated := _calibrated(facts, machine, best, metric)) is not None:
        mover, row = calibrated
        clock = facts.inputs.studies[row.study].metrics[row.metric].clock
        return Limit("calibrated", mover, clock if row.metric != metric else "")
    if _prediction(facts, machine, best, metric) is not None:
        return Limit("model", None)
    references = facts.study.with_role("reference")
    compared = (one for one in references if figures.ratio(machine, best, one, metric) is not None)
    first = next(compared, None)
    return None if first is None else Limit("reference", first)


def _share(
    facts: StudyFacts, machine: str, variant: Variant, metric: str, limit: Limit | None
) -> float | None:
    if limit is None:
        return None
    if limit.kind == "calibrated":
        time = facts.figures.metric(machine, variant, metric)
        mover = _calibrated(facts, machine, variant, metric)
        return mover[1].median / time.median if time is not None and mover is not None else None
    if limit.variant is not None:
        row = _headline(facts.figures.ratio(machine, variant, limit.variant, metric))
        return None if row is None else row.ratio
    prediction = _prediction(facts, machine, variant, metric)
    return None if prediction is None else prediction.predicted / prediction.measured


def _calibrated(
    facts: StudyFacts, machine: str, variant: Variant, metric: str
) -> tuple[Variant, MeasuredRow] | None:
    """The variant that study.yaml names as `limit`, and its fresh time for as many bytes: by
    `metric`, or else by the preferred one."""
    named = facts.study.limit
    if named is None or named.study not in facts.inputs.studies:
        return None
    other = StudyFacts(facts.inputs, facts.inputs.studies[named.study])
    mover = other.study.variant(named.variant)
    payload = facts.study.shown_case(variant).payload_bytes
    for case in (one for one in mover.cases if one.payload_bytes == payload):
        for one in (metric, *other.study.metrics_for(mover)):
            row = other.figures.find(machine, mover.name, case.id, one)
            if row is not None and not row.stale:
                return mover, row
    return None


def _prediction(facts: StudyFacts, machine: str, variant: Variant, metric: str) -> ModelRow | None:
    """The link model's time in the shown case, where the link or translation surely limits it."""
    table = facts.predictions
    case = facts.study.shown_case(variant).id
    is_shown = (table["machine"] == machine) & (table["variant"] == variant.name)
    is_shown &= (table["case"] == case) & (table["metric"] == metric)
    rows = rows_of(table[is_shown & table["judged"]], ModelRow)
    return rows[0] if rows else None
