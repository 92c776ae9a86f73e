"""Findings: the result of a claim as a sentence."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from analysis.base.errors import FieldError
from analysis.base.keys import Count, Keys, Sentence, key

FIGURES: Final = ("measured", "published")
"""Names that a headline may have in braces: the claim's figures."""

Bearing = Literal["design", "code", "understanding"]
BEARINGS: Final = get_args(Bearing)
"""The bearings, ordered by the number of readers that they concern."""


@dataclass(frozen=True, kw_only=True)
class Finding(Keys):
    """A sentence that pages show where the claim has this verdict."""

    belief: Sentence = key("A common belief that the finding contradicts, as a sentence.", "")
    verdict: Literal["holds", "does not hold"] = key(
        "The verdict with which the finding is shown; with any other, it is not."
    )
    headline: Sentence = key(
        "The finding as a sentence. {measured} and {published} stand for the figures of the"
        " comparison."
    )
    part: Count = key(
        "Number of the comparison, of several, whose figures the headline has; from 1.", 1
    )
    inverse: bool = key(
        "Whether the headline gives 1 over the figure, which then is a ratio above 1.", False
    )
    bears_on: Bearing = key(
        "The decision of a reader that the finding may change. design: the parts of a program, as"
        " where its data lie, what moves them and what runs beside. code: how one part of it is"
        " written. understanding: only how a figure or a device is seen. The home page has them in"
        " this order.",
        "understanding",
    )
    opens: bool = key("Whether the study's page opens with the finding, as its thesis.", False)
    advice: Sentence = key(
        "What a reader should do, as a sentence; pages show it with the finding.", ""
    )

    @property
    def precedence(self) -> int:
        """Rank on the home page, from 0."""
        return BEARINGS.index(self.bears_on)

    def sentence(self, figures: Mapping[str, str]) -> str:
        """The headline with `figures`, texts by FIGURES."""
        return self.headline.format(**figures)


def check_finding(finding: Finding, parts: int, where: str) -> None:
    """FieldError for a part that a claim with this number of `parts` lacks, and a headline with
    other figures than FIGURES."""
    if finding.part > parts:
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


def _braced(name: str | None, form: str | None, conversion: str | None) -> str | None:
    """The whole text in braces; None if there is none."""
    how = f"!{conversion}" if conversion else ""
    return None if name is None else f"{name}{how}{f':{form}' if form else ''}"
