"""The macro `source`: a variant's code and its difference from the step before, what the compiler
made of it, its figures and counters, folded."""

from __future__ import annotations

from markupsafe import Markup

from analysis.base.errors import require_known
from analysis.base.quantities import listing
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.compiled import compiled
from analysis.site.pages.counters import counter_tables
from analysis.site.pages.differences import (
    LANGUAGES,
    code_difference,
    highlighted,
    setting_difference,
)
from analysis.site.pages.fragments import Place, root_from
from analysis.site.pages.html import NO_HTML, joined, paragraph, plain, prose
from analysis.site.pages.page import macro
from analysis.site.pages.templates import macros
from analysis.site.pages.variants import figures_of, measuring
from analysis.study import Variant


@macro()
def source(facts: StudyFacts, place: Place, *variants: str) -> Markup:
    """Folded: the source of variants with its difference from the step before, machine code,
    resources, counters, figures on every machine, and the command that measures it again.

    variants: names; all of the study if omitted
    """
    for name in variants:
        require_known("variant", name, facts.study.variant_names)
    shown = [facts.study.variant(name) for name in variants] or facts.study.variants
    return joined("", (_folded(facts, one, place, anchored=not variants) for one in shown))


def _folded(facts: StudyFacts, variant: Variant, place: Place, *, anchored: bool) -> Markup:
    path = f"evidence/{facts.study.name}/{variant.name}.html"
    root = root_from(path)
    title = f"{variant.title} ({variant.name})"
    content = [
        paragraph(prose(" ".join(variant.idea.split()))),
        *(paragraph(prose(text)) for text in _notes(facts, variant)),
        figures_of(facts, variant, root),
        _headed(f"Difference from {variant.after}", _difference(facts, variant)),
        _headed(variant.path.name, highlighted(variant.path.read_text(), _language(variant))),
        _headed("Compiled", compiled(facts, variant)),
        _headed("Hardware counters", counter_tables(facts, variant, root)),
        _headed("Measure it again", macros("text.html").copied(measuring(facts, variant))),
    ]
    anchor = variant.name if anchored else ""
    return place.folded(path, title, title, joined("", content), anchor=anchor)


def _notes(facts: StudyFacts, variant: Variant) -> list[str]:
    """Why the variant should be faster, what study.yaml sets, and why it was skipped."""
    settings = setting_difference(facts.study, variant)
    skipped = facts.unreached.get(variant.name)
    return [
        *(f"Faster than `{name}`: {reason}" for name, reason in variant.beats.items()),
        *([f"study.yaml sets {listing(settings)}."] if settings else []),
        *([f"Skipped on every machine: {plain(skipped)}."] if skipped else []),
    ]


def _difference(facts: StudyFacts, variant: Variant) -> Markup:
    difference = code_difference(facts.study, variant)
    return highlighted(difference, "diff") if difference else NO_HTML


def _headed(heading: str, content: Markup) -> Markup:
    return Markup("<h2>{}</h2>{}").format(heading, content) if content else NO_HTML


def _language(variant: Variant) -> str:
    return LANGUAGES[variant.path.suffix]
