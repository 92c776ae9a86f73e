"""Badges: what came of a claim, as a small picture for other sites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from analysis.base.quantities import with_interval
from analysis.site.facts.basis import FEW
from analysis.site.facts.verdicts import UNDECIDED
from analysis.site.pages.svg import LETTER_PX, element
from analysis.study.claims.verdicts import FAILS, HOLDS, NOT_TESTED

HEIGHT_PX: Final = 20.0
PADDING_PX: Final = 6.0
GREY: Final = "#555b66"
COLOURS: Final = {HOLDS: "#11643f", FAILS: "#a32a24", UNDECIDED: GREY, NOT_TESTED: GREY}
"""White stands out from each; where machines disagree or runs are few, the badge is grey."""
_FONT: Final = "11px Verdana, DejaVu Sans, sans-serif"


def outcome(judged: Sequence[tuple[str, str]]) -> str:
    """`holds`, or `holds on 1 of 3, does not hold on 2` where the verdicts are not all the same.

    `judged` are the verdicts, each with its runs if these are few, as `in 1 run on 1 host`.
    """
    verdicts = [verdict for verdict, _ in judged]
    kinds = [kind for kind in COLOURS if kind in verdicts]
    few = [one for _, one in judged if one]
    if len(judged) == 1:
        return " ".join(filter(None, judged[0]))
    count = f"{len(few)} in {FEW}" if few else ""
    if len(kinds) < 2:
        return with_interval("".join(kinds) or NOT_TESTED, count)
    first, *rest = (f"{kind} on {verdicts.count(kind)}" for kind in kinds)
    return with_interval(", ".join([f"{first} of {len(verdicts)}", *rest]), count)


def badge(claim: str, judged: Sequence[tuple[str, str]]) -> Markup:
    """The claim's id beside what came of it; SVG. Grey if every verdict uses few runs."""
    words, kinds = outcome(judged), {verdict for verdict, _ in judged}
    is_coloured = len(kinds) == 1 and not all(few for _, few in judged)
    colour = COLOURS[kinds.pop()] if is_coloured else GREY
    # Verdana is wider than the letters of drawings.
    widths = [1.15 * LETTER_PX * len(text) + 2 * PADDING_PX for text in (claim, words)]
    boxes = [
        element("rect", x=x, width=width, height=HEIGHT_PX, fill=fill)
        for x, width, fill in ((0.0, widths[0], "#22303f"), (widths[0], widths[1], colour))
    ]
    texts = [
        element("text", text, x=x + PADDING_PX, y=14.0, fill="#fff", style=f"font: {_FONT}")
        for x, text in ((0.0, claim), (widths[0], words))
    ]
    return element(
        "svg",
        *(element("title", f"{claim}: {words}"), *boxes, *texts),
        xmlns="http://www.w3.org/2000/svg",
        width=sum(widths),
        height=HEIGHT_PX,
        role="img",
        aria_label=f"{claim}: {words}",
    )
