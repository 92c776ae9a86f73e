"""What became of the captures of a variant, in words: what is stale, what is missing, and why."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from analysis.base.quantities import listing
from analysis.site.facts.captures import STALE, Capture
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import NO_HTML, code, folded, joined, listed, plain
from analysis.study import Variant

CAPTURES: Final = {"counters": "counters", "timeline": "timeline"}
"""What pages call each kind of capture."""


def titled(variant: Variant, capture: Capture) -> str:
    """The name of the variant, with what is amiss with its capture."""
    return f"{variant.name}, stale" if capture.state == STALE else variant.name


def uncaptured(facts: StudyFacts) -> Markup:
    """Missing and stale captures of the study, an item per reason with its variants folded; empty
    if none is missing."""
    variants: dict[str, list[Markup]] = {}
    for variant in facts.study.variants:
        for sentence in gaps(facts, variant):
            variants.setdefault(sentence, []).append(code(variant.name))
    items = [
        Markup(sentence)
        + folded(f"{len(names)} variant{'s' * (len(names) > 1)}", joined(", ", names))
        for sentence, names in variants.items()
    ]
    return listed("ul", items) if items else NO_HTML


def gaps(facts: StudyFacts, variant: Variant) -> list[str]:
    """Missing and stale captures of the variant, a sentence per reason."""
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
                called = facts.inputs.called(machine)
                sentences.append(f"The timeline on {called} is stale: the code has changed since.")
        for reason, names in missing.items():
            key = " and ".join(names), reason
            machines.setdefault(key, []).append(facts.inputs.called(machine))
    return sentences + [
        f"{names.capitalize()} on {listing(found)}: {plain(reason)}."
        for (names, reason), found in machines.items()
    ]
