"""The fastest step on a machine, and the steps without a measurable difference from it."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.site.facts.figures import Figures
from analysis.study import Variant


@dataclass(frozen=True)
class Ranking:
    """Steps of a study in the order of their speed, by machine."""

    figures: Figures

    def contenders(self, machine: str) -> list[Variant]:
        """Measured steps that solve the study's problem, the shortest time in its shown case
        first.

        Those that deliver other bytes than the first, whose constants are not the study's, or that
        say that no ceiling is theirs, solve another one. Repeats of a step do not count.
        """
        figures, study = self.figures, self.figures.study
        steps = study.with_role("step", "beyond")
        payload = study.shown_case(steps[0]).payload_bytes if steps else 0
        measured = [
            (row.median, step)
            for step in steps
            if study.shown_case(step).payload_bytes == payload
            and dict(step.constants) == dict(study.constants)
            and step.ceilings != ()
            and not study.is_repeat(step)
            and (row := figures.time(machine, step)) is not None
        ]
        return [step for _, step in sorted(measured, key=lambda pair: pair[0])]

    def fastest(self, machine: str) -> Variant | None:
        """The first of the contenders, be it surely or not; None where nothing was measured."""
        return next(iter(self.contenders(machine)), None)

    def ties(self, machine: str) -> list[Variant]:
        """The contenders with fresh figures that the fastest is not surely faster than."""
        contenders = self.contenders(machine)
        return [
            other
            for other in contenders[1:]
            if (row := self.figures.time(machine, other)) is not None
            and not row.stale
            and not self.is_surely_faster(machine, contenders[0], other)
        ]

    def is_surely_faster(self, machine: str, variant: Variant, other: Variant) -> bool:
        """By the ratio of the two, which pairs them within their runs; of what was measured in no
        run together, nothing is sure."""
        if (row := self.figures.comparison(machine, variant, other)) is not None:
            return row.verdict == "faster"
        if (row := self.figures.comparison(machine, other, variant)) is not None:
            return row.verdict == "slower"
        return False
