"""Macros of the pages of before, in terms of today's; each goes with the last page that uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from analysis.site.facts.addresses import claim_anchor
from analysis.site.facts.findings import findings
from analysis.site.facts.inputs import Inputs
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.pages.html import joined, link, paragraph
from analysis.site.pages.inline import figure
from analysis.site.pages.machines import machine_table
from analysis.site.pages.model import parameters
from analysis.site.pages.page import MACROS, Page, macro
from analysis.site.pages.tables import steps


@macro()
def lead(facts: StudyFacts, thesis: str = "") -> str:
    scope = f"Unless stated otherwise, figures are for the case `{facts.study.headline}`."
    opening = thesis or next(iter(_sentences(facts)), facts.study.question)
    return f"{opening}\n\n{scope}\n{{: .hp-quiet .hp-scope }}"


def _sentences(facts: StudyFacts) -> list[Markup]:
    return [
        link(
            f"#{claim_anchor(facts.study.name, result.claim.id)}",
            finding.sentence(
                {
                    "measured": result.write(result.figures.measured),
                    "published": result.write(result.figures.published),
                }
            ),
        )
        for finding, result in findings(facts)
    ]


@macro(may_be_empty=True)
def advice(facts: StudyFacts) -> str:
    found = [finding.advice for finding, _ in findings(facts) if finding.advice]
    return "\n".join(["## What to do", "", *(f"- {one}" for one in found)]) if found else ""


@macro("findings", may_be_empty=True)
def all_findings(studies: Mapping[str, StudyFacts], *without: str) -> Markup:
    found = [_sentences(facts)[:1] for name, facts in studies.items() if name not in without]
    return joined("", (paragraph(*one) for one in found if one))


@macro(may_be_empty=True)
def findings_of(facts: StudyFacts) -> Markup:
    return joined("", (paragraph(one) for one in _sentences(facts)))


@macro(may_be_empty=True)
def variants(page: Page, facts: StudyFacts, *roles: str) -> Markup:
    shown = facts.study.with_role(*roles)
    has_times = any(facts.figures.time(page.machine(facts), one) for one in shown)
    return steps(page, facts, roles=roles) if has_times else Markup()


@macro()
def rate(page: Page, facts: StudyFacts, variant: str, clock: str = "host_time", **k: Any) -> Markup:
    return figure(page, facts, variant, clock, **k)


@macro()
def based_on(facts: StudyFacts, variant: str, clock: str = "", **keys: Any) -> str:
    return ""


MACROS["based_on"] = lambda *_, **__: ""
MACROS["on_two_machines"] = lambda *_, **__: ""
MACROS["machines_in_brief"] = lambda *_, **__: ""
MACROS["machine_gaps"] = lambda *_, **__: ""
MACROS["physical_machines"] = lambda *_, **__: ""
MACROS["measuring_stages"] = lambda *_, **__: ""
MACROS["copies"] = lambda *_, **__: ""
MACROS["agreement_in_brief"] = lambda *_, **__: ""
MACROS["model_in_brief"] = lambda *_, **__: ""
MACROS["headroom"] = lambda *_, **__: ""


@macro(may_be_empty=True)
def has_results(facts: StudyFacts) -> str:
    return "yes" if facts.machines else ""


@macro("study_table")
def study_table(page: Page, facts: StudyFacts, name: str) -> str:
    return MACROS["table"](page, name, study=facts.study.name)


@macro()
def machine_parameters(inputs: Inputs) -> Markup:
    return parameters(inputs)


@macro()
def machine_differences(inputs: Inputs) -> Markup:
    return machine_table(inputs, differing=True)
