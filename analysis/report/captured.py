"""What became of the captures of a variant, in words: what is stale, what is missing, and why."""

from __future__ import annotations

from typing import Final

from analysis.facts.captures import STALE, Capture
from analysis.facts.study_facts import StudyFacts
from analysis.quantities import listing
from analysis.report.html import plain
from analysis.study import Variant

CAPTURES: Final = {"ncu": "counters", "timeline": "timeline"}
"""What pages call each kind of capture."""


def titled(variant: Variant, capture: Capture) -> str:
    """The name of the variant, with what is amiss with its capture."""
    return f"{variant.name}, stale" if capture.state == STALE else variant.name


def gaps(facts: StudyFacts, variant: Variant) -> list[str]:
    """What was not captured of the variant, or is stale, and why: a sentence a reason."""
    if not variant.on_gpu:
        return []
    sentences = []
    machines: dict[tuple[str, str], list[str]] = {}  # by what is missing and why
    for machine in facts.machines:
        missing: dict[str, list[str]] = {}  # kinds of capture by the reason
        for kind, name in CAPTURES.items():
            capture = facts.captures.find(machine, variant, kind)
            if not capture.is_there:
                missing.setdefault(capture.reason, []).append(f"no {name}")
            elif capture.state == STALE and kind == "timeline":
                sentences.append(f"The timeline on {machine} is stale: the code has changed since.")
        for reason, names in missing.items():
            machines.setdefault((" and ".join(names), reason), []).append(machine)
    return sentences + [
        f"{names.capitalize()} on {listing(found)}: {plain(reason)}."
        for (names, reason), found in machines.items()
    ]
