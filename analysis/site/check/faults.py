"""A fault of the finished site."""

from __future__ import annotations

from typing import NamedTuple

from analysis.site.facts.inputs import Inputs
from analysis.study.claims.verdicts import MISSING


class Fault(NamedTuple):
    """A gap or a contradiction: `what` is wrong with a `part`, which is a variant, a claim or a
    page. Empty are the `machine` and the `study` if it concerns none alone, and the `part` if it is
    all of a study."""

    part: str
    what: str
    machine: str = ""
    study: str = ""

    def __str__(self) -> str:
        """For a log, with names as in files."""
        place = "/".join(filter(None, [self.study, self.part]))
        return ": ".join(filter(None, [self.machine, place, self.what]))

    def sentence(self, inputs: Inputs) -> str:
        """For readers, with names in words."""
        parts = [inputs.called(self.machine)]
        if study := inputs.studies.get(self.study):
            titles = {variant.name: variant.title for variant in study.variants}
            titles |= {f"claim {claim.id}": f"“{claim.says}”" for claim in study.claims}
            parts += [study.title, titles.get(self.part, self.part)]
        else:
            parts.append(self.part)
        return f"{', '.join(filter(None, parts))}: {self.what.replace(MISSING, '')}"
