"""What pages say of a study: its machines, its claims there, and its steps beside their limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from analysis.site.facts.basis import is_headline
from analysis.site.facts.claims import ClaimResult
from analysis.site.facts.rows import MeasuredRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Study, Variant
from analysis.study.claims import Claim


class Step(NamedTuple):
    """A variant with its time, and its speed as a share of the limit's; None if unknown or no
    headline."""

    variant: Variant
    time: MeasuredRow
    share: float | None


class Limit(NamedTuple):
    """The limit of a journey: the fastest ceiling, or a variant of another study with as many
    bytes, as study.yaml names it. `clock` is that of its metric, if this is not the journey's."""

    variant: Variant
    clock: str = ""


@dataclass(frozen=True)
class Journey:
    """Steps with a figure in the headline case, and the variants beyond them that solve the same
    problem; all by `metric`. `last` is the fastest of them."""

    machine: str
    metric: str
    steps: list[Step]
    last: Step
    limit: Limit | None

    @property
    def first(self) -> Step:
        return self.steps[0]


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


def claim_result(facts: StudyFacts, claim: Claim) -> ClaimResult | None:
    """The claim's first comparison on the machine with most evidence; None without a verdict."""
    return facts.verdicts.result(claim, machines_by_evidence(facts))


def journey_of(facts: StudyFacts) -> Journey | None:
    """The steps on the machine with most evidence; None if no machine has a step whose figure may
    be a headline."""
    return next(filter(None, (_on(facts, one) for one in machines_by_evidence(facts))), None)


def _on(facts: StudyFacts, machine: str) -> Journey | None:
    figures, study = facts.figures, facts.study
    shown = [
        one
        for one in study.with_role("step", "beyond")
        if one.case(study.headline) and (one.role == "step" or _solves(study, one))
    ]
    metric = max(
        study.metrics_for(*shown),
        key=lambda name: sum(figures.metric(machine, one, name) is not None for one in shown),
    )
    rows = {one: figures.metric(machine, one, metric) for one in shown}
    times = {one: row for one, row in rows.items() if row and is_headline(row)}
    solving = [one for one in times if _solves(study, one)]
    if not solving:
        return None
    best = min(solving, key=lambda one: times[one].median)
    limit, shares = _own_limit(facts, best, times) or _other_limit(facts, best, times) or (None, {})
    steps = {one: Step(one, time, shares.get(one)) for one, time in times.items()}
    return Journey(machine, metric, [*steps.values()], steps[best], limit)


def _solves(study: Study, step: Variant) -> bool:
    """Whether a step solves the study's problem: it has the payload of the first step, the
    constants of the study, and a ceiling; and it is no repeat."""
    first = study.shown_case(study.with_role("step", "beyond")[0])
    return (
        study.shown_case(step).payload_bytes == first.payload_bytes
        and dict(step.constants) == dict(study.constants)
        and step.ceilings != ()
        and not study.is_repeat(step)
    )


Times = Mapping[Variant, MeasuredRow]
Limited = tuple[Limit, Mapping[Variant, float]]
"""The limit of the best step, and the share of it that each step reaches."""


def _own_limit(facts: StudyFacts, best: Variant, times: Times) -> Limited | None:
    """By the fastest ceiling of the study."""
    machine, metric = times[best].machine, times[best].metric
    ceiling = facts.figures.limit_share(machine, best, facts.study.shown_case(best), metric)
    if ceiling is None:
        return None
    limit = facts.study.variant(ceiling.ceiling)
    rows = {step: facts.figures.ratio(machine, step, limit, metric) for step in times}
    return Limit(limit), {s: row.ratio for s, row in rows.items() if row and is_headline(row)}


def _other_limit(facts: StudyFacts, best: Variant, times: Times) -> Limited | None:
    """By the variant of another study that study.yaml names."""
    named = facts.study.limit
    if named is None or named.study not in facts.inputs.studies:
        return None
    machine, metric = times[best].machine, times[best].metric
    other = StudyFacts(facts.inputs, facts.inputs.studies[named.study])
    mover = other.study.variant(named.variant)
    movers = {
        case.payload_bytes: row
        for case in mover.cases
        for name in reversed((metric, *other.study.metrics_for(mover)))
        if (row := other.figures.find(machine, mover.name, case.id, name)) and not row.stale
    }
    beside = {step: movers.get(facts.study.shown_case(step).payload_bytes) for step in times}
    if (of_best := beside[best]) is None:
        return None
    clock = other.study.metrics[of_best.metric].clock if of_best.metric != metric else ""
    shares = {step: row.median / times[step].median for step, row in beside.items() if row}
    return Limit(mover, clock), shares
