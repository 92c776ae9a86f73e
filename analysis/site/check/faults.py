"""A fault of the finished site."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A gap or a contradiction: `what` is wrong with a `part`, which is a variant, a claim or a
    page. Empty are the `machine` and the `study` if it concerns none alone, and the `part` if it is
    all of a study."""

    part: str
    what: str
    machine: str = ""
    study: str = ""

    def __str__(self) -> str:
        """A line with names as in files."""
        place = "/".join(filter(None, [self.study, self.part]))
        return ": ".join(filter(None, [self.machine, place, self.what]))
