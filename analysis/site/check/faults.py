"""A fault of the finished site."""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A gap or a contradiction: `where` it is, and `what` is wrong. `machine` is empty if it
    concerns no machine alone."""

    where: str
    what: str
    machine: str = ""

    def __str__(self) -> str:
        machine = f"{self.machine}: " if self.machine else ""
        return f"{machine}{self.where}: {self.what}"
