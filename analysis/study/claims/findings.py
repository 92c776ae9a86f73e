"""Findings: what the verdict on a claim tells, in a sentence."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from analysis.base.errors import FieldError

FIGURES: Final = ("measured", "published")
"""What a headline may put in, in braces: the claim's own figures."""

BEARINGS: Final = ("design", "code", "understanding")
"""What a finding may bear on, what concerns most readers first: of what a program is built, how one
part of it is written, or how a figure is understood. As in workflow/schemas/study.schema.yaml."""


@dataclass(frozen=True)
class Finding:
    """It stands where the claim's verdict is `verdict`. `headline` tells it, with figures of the
    claim's comparison number `part`, from 1, in place of their names in braces. `belief` is a
    common one that it contradicts; empty where there is none. `bears_on` is one of BEARINGS."""

    verdict: str
    headline: str
    belief: str = ""
    part: int = 1
    bears_on: str = BEARINGS[-1]

    @property
    def precedence(self) -> int:
        """From 0, for what a reader should meet first."""
        return BEARINGS.index(self.bears_on)

    def told(self, figures: Mapping[str, str]) -> str:
        """The headline; `figures` are by FIGURES, as a page writes them."""
        return self.headline.format(**figures)


def parse_finding(entry: Mapping[str, Any] | None, parts: int, where: str) -> Finding | None:
    """The `finding` of a claim with so many `parts`, which its schema has passed.

    FieldError for a part that is not there, and a headline with other figures than FIGURES.
    """
    if entry is None:
        return None
    finding = Finding(**{key: _stripped(value) for key, value in entry.items()})
    if not 1 <= finding.part <= parts:
        raise FieldError(f"{where}.part", f"a comparison of the claim, 1 to {parts}", finding.part)
    try:
        parts_of = string.Formatter().parse(finding.headline)
        names = [_braced(*part) for _, *part in parts_of]
    except ValueError as error:
        raise FieldError(
            f"{where}.headline", f"names in braces ({error})", finding.headline
        ) from error
    if others := sorted({name for name in names if name is not None} - set(FIGURES)):
        raise FieldError(f"{where}.headline", f"in braces only {list(FIGURES)}", others[0])
    return finding


def _braced(name: str | None, form: str | None, conversion: str | None) -> str | None:
    """What stands in braces, all of it; None where nothing does."""
    how = f"!{conversion}" if conversion else ""
    return None if name is None else f"{name}{how}{f':{form}' if form else ''}"


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value
