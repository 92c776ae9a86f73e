"""The fastest step on a machine, and the steps without a measurable difference from it."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.site.facts.basis import is_headline, is_level
from analysis.site.facts.figures import Figures
from analysis.site.facts.rows import MeasuredRow
from analysis.study import Variant


@dataclass(frozen=True)
class Ranking:
    """Steps of a study in the order of their speed, by machine."""

    figures: Figures

    def solving(self, machine: str) -> list[Variant]:
        """Measured steps that solve the study's problem, in the study's order.

        A variant solves another problem if its payload differs from the first step's, if it
        changes the study's constants, or if it has an empty list of ceilings. Repeats of a step are
        left out.
        """
        figures, study = self.figures, self.figures.study
        steps = study.with_role("step", "beyond")
        payload = study.shown_case(steps[0]).payload_bytes if steps else 0
        return [
            step
            for step in steps
            if study.shown_case(step).payload_bytes == payload
            and dict(step.constants) == dict(study.constants)
            and step.ceilings != ()
            and not study.is_repeat(step)
            and figures.time(machine, step) is not None
        ]

    def metric(self, machine: str) -> str:
        """The metric that ranks the steps."""
        return self.figures.shared_metric(machine, self.solving(machine))

    def time(self, machine: str, step: Variant) -> MeasuredRow | None:
        """The time that ranks a step."""
        return self.figures.metric(machine, step, self.metric(machine))

    def contenders(self, machine: str) -> list[Variant]:
        """The steps of `solving` with a time by the metric that ranks them, in ascending order."""
        measured = [
            (row.median, step)
            for step in self.solving(machine)
            if (row := self.time(machine, step)) is not None
        ]
        return [step for _, step in sorted(measured, key=lambda pair: pair[0])]

    def fastest(self, machine: str) -> Variant | None:
        """The contender with the shortest time, even if others tie with it; None without any."""
        return next(iter(self.contenders(machine)), None)

    def ties(self, machine: str) -> list[Variant]:
        """Contenders with fresh figures and no measurable difference from the fastest.

        Enough runs must have both, and the interval of their ratio must hold that of their medians,
        which may come from other runs.
        """
        contenders = self.contenders(machine)
        return [other for other in contenders[1:] if self._is_tie(machine, contenders[0], other)]

    def _is_tie(self, machine: str, best: Variant, other: Variant) -> bool:
        times, metric = [self.time(machine, one) for one in (best, other)], self.metric(machine)
        row = self.figures.ratio(machine, best, other, metric)
        if row is None and (row := self.figures.ratio(machine, other, best, metric)) is not None:
            times.reverse()
        if row is None or row.verdict in ("faster", "slower"):
            return False
        if not is_headline(row) or not is_level(row):
            return False
        of, against = times
        if of is None or against is None or of.stale or against.stale:
            return False
        return row.ci_low <= against.median / of.median <= row.ci_high

    def is_surely_faster(self, machine: str, variant: Variant, other: Variant, metric: str) -> bool:
        """Whether `variant` is measurably faster than `other` by their paired ratio of `metric`;
        False if no run measured both."""
        if (row := self.figures.ratio(machine, variant, other, metric)) is not None:
            return row.verdict == "faster"
        if (row := self.figures.ratio(machine, other, variant, metric)) is not None:
            return row.verdict == "slower"
        return False
