"""Bytes that policies of eviction fetched, and the time that these bytes take."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from analysis.api.charts import StudyFacts
from analysis.api.study import parse_case

from .cells import (
    SCATTERED,
    Cell,
    by_place,
    cells,
    fastest,
    of_variants,
    seconds_per_row,
    step_names,
)

METRIC: Final = "fetched"
OPTIMUM: Final = "belady"
COMPARED: Final[Mapping[str, str]] = {"lru": "LRU", "clock": "CLOCK", "random": "random"}
"""Policies beside the optimum, as the page calls them."""


@dataclass(frozen=True)
class PolicyResult:
    """Bytes per step by policy in one trace; `seconds_per_byte` is None where no machine's fetches
    were measured."""

    machine: str
    trace: str
    slots: int
    fetched: Mapping[str, float]
    seconds_per_byte: float | None

    @property
    def optimum(self) -> float:
        return self.fetched[OPTIMUM]

    def over_optimum(self, policy: str) -> float:
        return self.fetched[policy] / self.optimum

    def seconds_over_optimum(self, policy: str) -> float | None:
        """Time per step that the policy spends on bytes which the optimum does not fetch."""
        if self.seconds_per_byte is None:
            return None
        return (self.fetched[policy] - self.optimum) * self.seconds_per_byte


def policy_results(facts: StudyFacts) -> list[PolicyResult]:
    """A result for each machine and case in which all policies were simulated."""
    policies = {
        variant.name: str(variant.options["policy"])
        for variant in facts.study.variants
        if "policy" in variant.options
    }
    by_case: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in facts.fresh(METRIC):
        by_case[row.machine, row.case][policies[row.variant]] = row.median
    rates = _seconds_per_byte(facts)
    found = []
    for (machine, case), fetched in by_case.items():
        if {OPTIMUM, *COMPARED} <= fetched.keys() and fetched[OPTIMUM]:
            keys = parse_case(case)
            found.append(
                PolicyResult(
                    *(machine, str(keys["trace"]), int(keys["slots"])),
                    *(fetched, rates.get(machine)),
                )
            )
    return sorted(found, key=lambda one: (one.machine, one.slots, one.trace))


def _seconds_per_byte(facts: StudyFacts) -> dict[str, float]:
    """By machine: what one further byte takes in a step of one request, from the largest pool, by
    the fastest variants."""

    def is_usual(cell: Cell) -> bool:
        place = cell.place
        return (place.requests, place.layers, place.layout) == (1, 1, SCATTERED)

    steps = [cell for cell in of_variants(cells(facts), step_names(facts)) if is_usual(cell)]
    row_bytes = facts.study.constants["token_bytes"]
    return {
        place.machine: seconds_per_row(curve) / row_bytes
        for place, curve in by_place(fastest(steps))  # the largest pool comes last
        if len(curve) > 1
    }
