"""A fault of the finished site."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from analysis.site.facts.inputs import Inputs
from analysis.study.claims.verdicts import MISSING

_CASE: Final = re.compile(r"\w+=[\w.]+(?:,\w+=[\w.]+)*")
"""Name of a case."""


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
        """For readers, with names of machines, variants, claims and cases in words."""
        machine, what, part = inputs.called(self.machine), self.what.replace(MISSING, ""), self.part
        study = inputs.studies.get(self.study)
        if study:
            titles = {variant.name: f"“{variant.title}”" for variant in study.variants}
            claims = {f"claim {claim.id}": f"“{claim.says}”" for claim in study.claims}
            part = {**titles, **claims}.get(part, part)
            what = re.sub(r"\w+", lambda word: titles.get(word[0], word[0]), what)
        # `pool_mib=188,rows=2048` becomes `pool mib 188, rows 2048`.
        what = _CASE.sub(lambda case: case[0].replace("=", " ").replace(",", ", "), what)
        what = what.replace("_", " ")
        where = ", ".join(filter(None, [machine, study.title if study else "", part]))
        return f"{where}: {what}"
