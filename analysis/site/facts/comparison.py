"""Comparison of machines: ratios of their speeds in the cases that pages show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from analysis.compare.judge import DIFFERENT, EQUAL_WITHIN, UNDECIDED, Judged, judge
from analysis.compare.judge import EQUAL as IS_EQUAL
from analysis.compare.side import Run
from analysis.site.facts.basis import figures_by_run, is_headline
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Variant

FASTER: Final = "faster"
SLOWER: Final = "slower"
EQUAL: Final = f"equal within {EQUAL_WITHIN * 100:g} %"
UNCLEAR: Final = UNDECIDED
"""Verdicts on a ratio. FASTER and SLOWER ones are different."""


class Machine(NamedTuple):
    """A machine by the name of its folder."""

    name: str


class Figure(NamedTuple):
    """A time in s of a variant in a case. `by_run` has the medians of the runs in s if they are
    enough to compare machines by; otherwise, it is empty."""

    study: str
    variant: Variant
    case: str
    payload_bytes: int
    metric: str
    seconds: float
    by_run: tuple[float, ...]


@dataclass(frozen=True)
class Ratio:
    """Speed of `of` relative to `against`, figures of two machines of one variant in one case, and
    what the runs of both decide; None where either has too few."""

    base: Machine
    other: Machine
    of: Figure
    against: Figure
    judged: Judged | None = None

    @property
    def value(self) -> float:
        """The ratio of the geometric means over runs; without a decision, of the figures."""
        return self.judged.ratio if self.judged else self.against.seconds / self.of.seconds

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the ratio of means; NaN without a decision."""
        return (self.judged.low, self.judged.high) if self.judged else (math.nan, math.nan)

    @property
    def verdict(self) -> str:
        faster = FASTER if self.value > 1 else SLOWER
        words = {DIFFERENT: faster, IS_EQUAL: EQUAL, UNDECIDED: UNCLEAR}
        return words[self.judged.verdict if self.judged else UNDECIDED]

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """The largest difference is the greatest, then come other decisions, then ratios without
        one, each kind by its size."""
        is_different = self.judged is not None and self.judged.verdict == DIFFERENT
        return is_different, self.judged is not None, abs(math.log(self.value))


@dataclass(frozen=True)
class Comparison:
    """The machines, compared by the figures of `studies`."""

    inputs: Inputs
    studies: Mapping[str, StudyFacts]

    @property
    def machines(self) -> list[Machine]:
        return [Machine(name) for name in sorted(self.inputs.machines)]

    def called(self, machine: Machine) -> str:
        """Name of a machine on pages."""
        return self.inputs.called(machine.name)

    def host_names(self, machine: Machine) -> dict[str, str]:
        """`host 1` and so on for the hosts of a machine, by what its runs call them."""
        hosts = {run.host.id for run in self.inputs.runs_on(machine.name)}
        return {host: f"host {number}" for number, host in enumerate(sorted(hosts), start=1)}

    def ratios(self, base: Machine, other: Machine) -> list[Ratio]:
        """Ratios of all variants that both have measured, in the order of the studies, each by the
        first metric that both have. The verdicts are on all of them together."""
        pairs: dict[tuple[str, ...], tuple[Figure, Figure]] = {}
        for facts in self.studies.values():
            for variant in facts.study.subjects:
                if pair := _pair(facts, variant, base.name, other.name):
                    pairs[facts.study.name, variant.name, facts.study.headline] = pair
        enough: dict[tuple[str, ...], tuple[list[Run], list[Run]]] = {
            key: ([*map(Run, of.by_run)], [*map(Run, against.by_run)])
            for key, (of, against) in pairs.items()
            if of.by_run and against.by_run
        }
        decided = {judged.row: judged for judged in judge(enough)}
        return [Ratio(base, other, *pair, decided.get(key)) for key, pair in pairs.items()]


def _pair(facts: StudyFacts, variant: Variant, *machines: str) -> tuple[Figure, Figure] | None:
    """Fresh figures of both machines in the shown case, by the first metric that both have; None
    without one."""
    case = facts.study.shown_case(variant)
    for metric in facts.study.metrics_for(variant):
        rows = [facts.figures.metric(machine, variant, metric) for machine in machines]
        fresh = [row for row in rows if row is not None and not row.stale]
        if len(fresh) == 2:
            place = (facts.study.name, variant, case.id, case.payload_bytes, metric)
            of, against = (
                Figure(*place, row.median, tuple(figures_by_run(row)) if is_headline(row) else ())
                for row in fresh
            )
            return of, against
    return None
