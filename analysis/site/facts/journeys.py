"""What pages say of a study: its machines by evidence, and its steps beside their limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from analysis.site.facts.basis import is_headline
from analysis.site.facts.inputs import MeasuredRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Study, Variant

Times = Mapping[Variant, MeasuredRow]


class Limit(NamedTuple):
    """The limit of a journey: the fastest ceiling, or a variant of another study with as many
    bytes, as study.yaml names it. `clock` is that of its metric, if this is not the journey's;
    `shares` are those of the limit's speed that steps reach, where known and based on enough
    runs."""

    variant: Variant
    clock: str
    shares: Mapping[Variant, float]


class Journey(NamedTuple):
    """Times, by `metric`, of the steps with a figure in the headline case, and of the variants
    beyond them that solve the same problem. `best` is the fastest of them."""

    machine: str
    metric: str
    times: Times
    best: Variant
    limit: Limit | None

    @property
    def shares(self) -> Mapping[Variant, float]:
        """The shares of the limit; none without one."""
        return self.limit.shares if self.limit else {}


def machines_by_evidence(facts: StudyFacts) -> list[str]:
    """Machines of a study, by descending evidence: the sum of hosts over all fresh figures, then
    the sum of runs, then the newest run.

    Hosts differ, so one more host for a figure counts as much as one more figure.
    """

    def evidence(machine: str) -> tuple[int, int, str]:
        times = (facts.time(machine, variant) for variant in facts.study.subjects)
        fresh = [row for row in times if row is not None and not row.stale]
        hosts, runs = sum(row.hosts for row in fresh), sum(row.runs for row in fresh)
        return hosts, runs, max((row.run for row in fresh), default="")

    return sorted(facts.machines, key=evidence, reverse=True)


def journey_of(facts: StudyFacts) -> Journey | None:
    """The steps on the machine with most evidence; None if no machine has a step whose figure may
    be a headline."""
    return next(filter(None, (_on(facts, one) for one in machines_by_evidence(facts))), None)


def _on(facts: StudyFacts, machine: str) -> Journey | None:
    study = facts.study
    shown = [
        one
        for one in study.with_role("step", "beyond")
        if one.case(study.headline) and (one.role == "step" or _solves(study, one))
    ]
    metric = max(
        study.metrics_for(*shown),
        key=lambda name: sum(facts.metric(machine, one, name) is not None for one in shown),
    )
    rows = {one: facts.metric(machine, one, metric) for one in shown}
    times = {one: row for one, row in rows.items() if row and is_headline(row)}
    solving = [one for one in times if _solves(study, one)]
    if not solving:
        return None
    best = min(solving, key=lambda one: times[one].median)
    limit = _ceiling(facts, best, times) or _limit_of_another_study(facts, best, times)
    return Journey(machine, metric, times, best, limit)


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


def _ceiling(facts: StudyFacts, best: Variant, times: Times) -> Limit | None:
    """The fastest ceiling of the study."""
    machine, metric = times[best].machine, times[best].metric
    share = facts.limit_share(machine, best, facts.study.shown_case(best), metric)
    if share is None:
        return None
    ceiling = facts.study.variant(share.ceiling)
    rows = {step: facts.ratio(machine, step, ceiling, metric) for step in times}
    shares = {step: row.ratio for step, row in rows.items() if row and is_headline(row)}
    return Limit(ceiling, "", shares)


def _limit_of_another_study(facts: StudyFacts, best: Variant, times: Times) -> Limit | None:
    """The variant of another study that study.yaml names."""
    study, variant = facts.study.limit or ("", "")
    if study not in facts.inputs.studies:
        return None
    machine, metric = times[best].machine, times[best].metric
    other = StudyFacts(facts.inputs, facts.inputs.studies[study])
    mover = other.study.variant(variant)
    movers = {
        case.payload_bytes: row
        for case in mover.cases
        for name in reversed((metric, *other.study.metrics_for(mover)))
        if (row := other.find(machine, mover.name, case.id, name)) and not row.stale
    }
    beside = {step: movers.get(facts.study.shown_case(step).payload_bytes) for step in times}
    if (of_best := beside[best]) is None:
        return None
    clock = other.study.metrics[of_best.metric].clock if of_best.metric != metric else ""
    shares = {step: row.median / times[step].median for step, row in beside.items() if row}
    return Limit(mover, clock, shares)
