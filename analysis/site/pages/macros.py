"""The macros that pages embed: functions that `@macro()` registers.

A page calls `{{ name(arguments) }}`. Most macros are functions of the modules that are imported
here; the others are below.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from typing import Any

from markupsafe import escape

from analysis.base.errors import require_known
from analysis.base.quantities import whole
from analysis.base.reading import read_yaml
from analysis.site.charts.explorer import first_choice
from analysis.site.charts.theme import CONFIGURATION
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.interface import CONSTANTS
from analysis.site.pages import (
    agreement,
    architecture,
    chart_figures,
    citing,
    copies,
    counters,
    drawings,
    hardware,
    home,
    inline,
    links,
    machines,
    measuring,
    model,
    probe,
    reference,
    repeatability,
    study_pages,
    study_tables,
    templates,
    variants,
)
from analysis.site.pages import ledger as claim_pages
from analysis.site.pages.common import ALL, EXPLORER, EXPLORER_START
from analysis.site.pages.html import link
from analysis.site.pages.navigation import JOURNEYS
from analysis.site.pages.page import GIVEN, MACROS, Page, macro
from analysis.study import parse_case
from analysis.study.config import CONFIG_FILE, Settings


def define_env(env: Any) -> None:
    """Called by mkdocs-macros; the configuration's `extra.staged` holds what was staged."""
    page = Page(env.conf["extra"]["staged"], env)
    for name, function in MACROS.items():
        env.macro(functools.partial(function, page), name)


@macro()
def lead(page: Page, facts: StudyFacts, thesis: str = "") -> str:
    """The study's thesis, question and write-up.

    thesis: a sentence to open with instead of a finding; none if empty
    """
    page.env.page.meta["description"] = escape(study_pages.summary(facts))
    return study_pages.lead(facts, thesis)


@macro()
def claims(page: Page, facts: StudyFacts, *ids: str) -> str:
    """The claims of the study, with the verdict on each machine.

    ids: some of the claims; all if omitted
    """
    return claim_pages.claims_of(facts, page.place, ids)


@macro()
def ledger(page: Page) -> str:
    """Every claim of every study, with the verdict on each machine."""
    return claim_pages.ledger(page.staged.studies, page.staged.pages, page.place)


@macro()
def download(page: Page, name: str) -> str:
    """A link to a table, or to all samples.

    name: name of a file in data/, such as `summary.csv`
    """
    return link(page.address(f"data/{name}"), name)


@macro()
def constant(name: str) -> str:
    """A constant of the code; shares as percentages, sizes in MiB, text as it is.

    name: name of a constant in analysis/site/interface.py, such as `CONFIDENCE`
    """
    require_known("constant", name, sorted(CONSTANTS))
    value = CONSTANTS[name]
    if isinstance(value, str):
        return value
    if name.endswith("_BYTES"):
        return f"{value / 2**20:g} MiB"
    return f"{value * 100:g} %" if isinstance(value, float) else whole(value)


@macro()
def journeys(page: Page, *names: str) -> str:
    """A card for each journey: its steps, their gain and their distance from the limit.

    names: some of the studies; all journeys if omitted
    """
    found = [page.staged.studies[name] for name in names if name in page.staged.studies]
    return home.cards(found if names else page.studies[JOURNEYS], page.study_address)


@macro()
def findings(page: Page, *without: str) -> str:
    """The most important finding of each study, with its figure, basis and evidence.

    without: names of studies that the page is about anyway
    """
    every = [facts for group in page.studies.values() for facts in group]
    others = [facts for facts in every if facts.study.name not in without]
    return home.top_findings(others, page.study_address)


@macro()
def findings_of(page: Page, facts: StudyFacts) -> str:
    """The findings of another study, each with its figure, basis and evidence."""
    return home.study_findings(facts, page.study_address)


@macro()
def other_studies(page: Page) -> str:
    """The questions of all other studies, by group."""
    others = {title: group for title, group in page.studies.items() if title != JOURNEYS}
    return home.other_studies(others, page.study_address)


@macro()
def explorer(page: Page, studies: Mapping[str, StudyFacts]) -> str:
    """Selects and a chart of any metric over any key of any study, which a script fills."""
    about = {
        name: {
            "title": facts.study.title,
            "headline": parse_case(facts.study.headline),
            "metrics": {key: metric.label for key, metric in facts.study.metrics.items()},
        }
        for name, facts in studies.items()
        if not facts.summary.empty
    }
    names = page.staged.inputs.machine_names
    wanted = page.env.conf["extra"].get(EXPLORER_START, {})
    facts = studies.get(wanted.get("study"))
    start = first_choice(facts, wanted) if facts else None
    first = page.staged.charts[ALL][EXPLORER]
    return templates.macros("figure.html").explorer(
        *map(json.dumps, (about, names, start or {}, CONFIGURATION)), page.root, first
    )


@macro()
def samples(page: Page) -> str:
    """Links to the samples of every machine, study and variant."""
    return machines.sample_tables(page.staged.inputs, page.staged.sources, page.place)


@macro()
def parts() -> str:
    """Every part of the package by layer, its purpose and its imports."""
    return architecture.part_table(architecture.read_structure())


@macro()
def study_keys() -> str:
    """Every key of study.yaml, with its type and meaning."""
    return reference.schema_reference(reference.study_schema())


@macro()
def setting_keys() -> str:
    """Every setting of config.yaml, with its type, meaning and value."""
    return reference.schema_reference(reference.schema_of(Settings), read_yaml(CONFIG_FILE))


@macro()
def macro_list() -> str:
    """Every macro, as on this page."""
    return reference.macro_reference(MACROS, GIVEN)
