"""How far measuring is: a line a round, with the time left by the budgets of the studies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.measure.needs import Provision
from analysis.measure.plan import Plan
from analysis.study import Variant


@dataclass(frozen=True)
class Progress:
    """The expected seconds of one round of a study and of the studies after it, and its place among
    those that are measured together."""

    round_s: float
    later_s: float = 0.0
    place: int = 1
    places: int = 1

    def line(self, plan: Plan, number: int, left: int) -> str:
        """The line before round `number`, one of `left` to be done."""
        of_studies = f"study {self.place} of {self.places}, " if self.places > 1 else ""
        seconds = left * self.round_s + self.later_s
        time_left = f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"
        round_ = f"round {number + 1} of {plan.grid.rounds}"
        return f"{plan.study.name}: {of_studies}{round_}, about {time_left} left"


def expected(plans: Sequence[Plan], provisions: Sequence[Provision]) -> list[Progress]:
    """The progress of each of `plans`, which are run in this order, with what it may use."""
    round_s = [round_seconds(*one) for one in zip(plans, provisions, strict=True)]
    whole_s = [plan.grid.rounds * s for plan, s in zip(plans, round_s, strict=True)]
    return [
        Progress(seconds, sum(whole_s[place:]), place, len(plans))
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
