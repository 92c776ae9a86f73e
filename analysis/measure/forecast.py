"""How long measuring takes, by the budgets of the studies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.measure.needs import Provision
from analysis.measure.plan import Plan
from analysis.study import Variant


@dataclass(frozen=True)
class Forecast:
    """The expected length of a study's run: seconds of one of its rounds, seconds of the studies
    after it, and its place among those that are measured together."""

    round_s: float
    later_s: float = 0.0
    place: int = 1
    places: int = 1


def forecasts(plans: Sequence[Plan], provisions: Sequence[Provision]) -> list[Forecast]:
    """The forecast of each of `plans`, which are run in this order, with what it may use."""
    round_s = [round_seconds(*one) for one in zip(plans, provisions, strict=True)]
    whole_s = [plan.grid.rounds * s for plan, s in zip(plans, round_s, strict=True)]
    return [
        Forecast(seconds, sum(whole_s[place:]), place, len(plans))
        for place, seconds in enumerate(round_s, start=1)
    ]


def round_seconds(plan: Plan, provision: Provision) -> float:
    """Mean seconds that a round of the plan may take: the share of the budget of its cells that can
    run here."""
    runnable = [variant for variant in plan.variants if provision.unmet(variant) is None]
    whole_s = plan.study.budget_s / plan.grid.rounds
    return whole_s * _cells(runnable, plan) / max(_cells(plan.study.variants, plan), 1)


def _cells(variants: Iterable[Variant], plan: Plan) -> float:
    """Mean number of cells of these variants in a round."""
    rounds = plan.grid.rounds
    return sum(
        -(-rounds // case.every) / rounds
        for variant in variants
        for case in variant.in_grid(plan.grid.name)
    )
