"""Comparison of machines, their hosts and published sources: figures of variants, and ratios."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Final

import numpy as np

from analysis.base.quantities import listing
from analysis.compare.judge import DIFFERENT, EQUAL_WITHIN, UNDECIDED, Judged, judge
from analysis.compare.judge import EQUAL as IS_EQUAL
from analysis.compare.side import Row, Run
from analysis.site.facts.basis import figures_by_run, is_enough
from analysis.site.facts.figures import NOT_MEASURED
from analysis.site.facts.inputs import Inputs, RunFile
from analysis.site.facts.rows import MeasuredRow
from analysis.site.facts.study_facts import StudyFacts
from analysis.study import Variant

MACHINE: Final = "machine"
HOST: Final = "host"
PUBLISHED: Final = "published"
"""Kinds of subjects."""


@dataclass(frozen=True)
class Subject:
    """A machine, or one of its hosts; `machine` is empty for a published source."""

    name: str
    kind: str
    machine: str = ""


FASTER: Final = "faster"
SLOWER: Final = "slower"
EQUAL: Final = f"equal within {EQUAL_WITHIN * 100:g} %"
UNCLEAR: Final = UNDECIDED
"""Verdicts on a ratio. FASTER and SLOWER ones are different."""


@dataclass(frozen=True)
class Figure:
    """A time in s of a variant in a case. `by_run` has the medians of a machine's runs in s if they
    are enough to compare machines by; otherwise, it is empty."""

    study: str
    variant: Variant
    case: str
    payload_bytes: int
    metric: str
    seconds: float
    by_run: tuple[float, ...] = ()

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.study, self.variant.name, self.case, self.metric


@dataclass(frozen=True)
class Ratio:
    """Speed of `of` relative to `against`, two figures of one variant in one case, and what the
    runs of both decide; None where either has too few."""

    base: Subject
    other: Subject
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
        if self.judged is None or self.judged.verdict == UNDECIDED:
            return UNCLEAR
        if self.judged.verdict == IS_EQUAL:
            return EQUAL
        return FASTER if self.value > 1 else SLOWER

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """The largest difference is the greatest, then come other decisions, then ratios without
        one, each kind by its size."""
        is_different = self.judged is not None and self.judged.verdict == DIFFERENT
        return is_different, self.judged is not None, abs(math.log(self.value))


@dataclass(frozen=True)
class Comparison:
    """Figures of `studies` that can be compared."""

    inputs: Inputs
    studies: Mapping[str, StudyFacts]

    @property
    def machines(self) -> list[Subject]:
        return [Subject(name, MACHINE, name) for name in sorted(self.inputs.machines)]

    @cached_property
    def names(self) -> Mapping[str, str]:
        """Names of machines and hosts on pages, by the names of the subjects."""
        return {one.name: self.called(one) for one in (*self.machines, *self.figures)}

    def called(self, subject: Subject) -> str:
        """Name of a subject on pages: the machine and the number of its host, or the published
        text."""
        rest = subject.name.removeprefix(subject.machine)
        if subject.kind == HOST:
            rest = self._numbered[subject]
        return f"{self.inputs.called(subject.machine)}{rest}"

    def host_names(self, machine: Subject) -> dict[str, str]:
        """`host 1` and so on for the hosts of a machine, by what its runs call them."""
        hosts = {run.host.id for run in self.inputs.runs_on(machine.name)}
        return {host: f"host {number}" for number, host in enumerate(sorted(hosts), start=1)}

    @cached_property
    def _numbered(self) -> Mapping[Subject, str]:
        return {
            self.host(machine, host): f", {name}"
            for machine in self.machines
            for host, name in self.host_names(machine).items()
        }

    @cached_property
    def figures(self) -> Mapping[Subject, Mapping[tuple[str, str, str, str], Figure]]:
        """Fresh figures by subject, then by study, variant, case and metric. The cases are those
        shown on pages and those with published figures."""
        found: dict[Subject, dict[tuple[str, str, str, str], Figure]] = {
            machine: {} for machine in self.machines
        }
        for facts in self.studies.values():
            for subject, figure in self._of_study(facts):
                found.setdefault(subject, {})[figure.key] = figure
        return found

    def ratios(self, base: Subject, other: Subject) -> list[Ratio]:
        """Ratios of all variants and cases that both have, in the order of the studies, each by the
        preferred metric. The verdicts are on all of them together."""
        of, against = self.figures.get(base, {}), self.figures.get(other, {})
        pairs: dict[Row, tuple[Figure, Figure]] = {}
        for key, figure in of.items():
            if key in against:
                pairs.setdefault(key[:3], (figure, against[key]))
        judged = judge(
            {
                row: (list(map(Run, one.by_run)), list(map(Run, two.by_run)))
                for row, (one, two) in pairs.items()
                if one.by_run and two.by_run
            }
        )
        decided = {row.row: row for row in judged}
        return [Ratio(base, other, *pair, decided.get(row)) for row, pair in pairs.items()]

    def others(self, base: Subject) -> list[Subject]:
        """Subjects to compare the machine `base` with: other machines, its hosts if it has several,
        and published texts."""
        hosts = [one for one in self.figures if one.kind == HOST and one.machine == base.machine]
        return [
            *(one for one in self.figures if one.kind == MACHINE and one != base),
            *(hosts if len(hosts) > 1 else []),
            *self.published,
        ]

    def incomparable(self, base: Subject, other: Subject) -> dict[str, list[str]]:
        """Variants `study/variant` without a ratio of `base` and `other`, by reason. Variants that
        neither has measured are left out."""
        compared = {(one.of.study, one.of.variant.name) for one in self.ratios(base, other)}
        reasons: dict[str, list[str]] = {}
        for facts in self.studies.values():
            for variant in facts.study.subjects:
                if (facts.study.name, variant.name) in compared:
                    continue
                if reason := self._why_not(facts, variant, base, other):
                    reasons.setdefault(reason, []).append(f"{facts.study.name}/{variant.name}")
        return reasons

    @property
    def published(self) -> list[Subject]:
        """Published sources of figures."""
        return [one for one in self.figures if one.kind == PUBLISHED]

    def unmeasured(self, source: Subject) -> list[str]:
        """Variants `study/variant` with a figure from `source` in a case that no machine has
        measured."""
        measured = {key for machine in self.machines for key in self.figures[machine]}
        missing = (key for key in self.figures[source] if key not in measured)
        return list(dict.fromkeys(f"{study}/{variant}" for study, variant, *_ in missing))

    @staticmethod
    def host(machine: Subject, host: str) -> Subject:
        return Subject(f"{machine.name}, host {host}", HOST, machine.name)

    def _why_not(self, facts: StudyFacts, variant: Variant, base: Subject, other: Subject) -> str:
        states = {
            self.called(one): _state(facts, one.machine, variant)
            for one in (base, other)
            if one.kind == MACHINE
        }
        if set(states.values()) == {NOT_MEASURED}:
            return ""
        by_state: dict[str, list[str]] = {}
        for name, state in states.items():
            if state:
                by_state.setdefault(state, []).append(name)
        known = [f"{state} on {listing(names)}" for state, names in by_state.items()]
        return ", ".join(known) or "without a common metric"

    def _of_study(self, facts: StudyFacts) -> Iterator[tuple[Subject, Figure]]:
        printed = list(_printed(facts))
        cases: dict[str, dict[str, int]] = {}
        for variant in facts.study.subjects:
            shown = facts.study.shown_case(variant)
            cases[variant.name] = {shown.id: shown.payload_bytes}
        for _, figure in printed:
            cases[figure.variant.name][figure.case] = figure.payload_bytes
        yield from printed
        for machine in facts.machines:
            for variant in facts.study.subjects:
                for case, payload in cases[variant.name].items():
                    for metric in facts.study.metrics_for(variant):
                        row = facts.figures.find(machine, variant.name, case, metric)
                        if row is not None and not row.stale:
                            yield from self._of_row(facts, variant, payload, row)

    def _of_row(
        self, facts: StudyFacts, variant: Variant, payload: int, row: MeasuredRow
    ) -> Iterator[tuple[Subject, Figure]]:
        """Figures of the machine and of its hosts."""
        place = (facts.study.name, variant, row.case, payload, row.metric)
        by_run = figures_by_run(row)
        enough = tuple(by_run) if is_enough(len(by_run), row.hosts) else ()
        machine = Subject(row.machine, MACHINE, row.machine)
        yield machine, Figure(*place, row.median, enough)
        for host, seconds in _by_host(facts.figures.by_run(row)):
            yield self.host(machine, host), Figure(*place, seconds)


def _by_host(runs: Sequence[tuple[RunFile, float]]) -> Iterator[tuple[str, float]]:
    """Hosts with the medians over their runs."""
    pairs = sorted((run.host.id, median) for run, median in runs)
    for host, group in groupby(pairs, key=lambda pair: pair[0]):
        yield host, float(np.median([median for _, median in group]))


def _state(facts: StudyFacts, machine: str, variant: Variant) -> str:
    """State of a missing or stale figure of the shown case; empty for a fresh one."""
    row = facts.figures.time(machine, variant)
    if row is not None:
        return "stale" if row.stale else ""
    return facts.figures.absence(machine, variant, facts.study.shown_case(variant)).state


def _printed(facts: StudyFacts) -> Iterator[tuple[Subject, Figure]]:
    """Published times and rates of variants that the study has, with their source."""
    for row in facts.figures.printed:
        variant = facts.study.variant(row.variant)
        place = (facts.study.name, variant, row.case, row.payload_bytes, row.metric)
        yield Subject(f"published: {row.source}", PUBLISHED), Figure(*place, row.seconds)
