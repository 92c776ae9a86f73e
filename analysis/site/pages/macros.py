"""The macros that pages embed: functions of this module that `@macro` or `@study_macro` registers.

A page calls `{{ name(arguments) }}`. The first parameter is not the page's to give: it is the Page
that is being built, or of a macro of a study what is known of that page's study.
"""

from __future__ import annotations

import functools
from typing import Any

from markupsafe import escape

from analysis.base.errors import require_known
from analysis.base.quantities import whole
from analysis.base.schema import read_yaml
from analysis.site.facts.study_facts import StudyFacts
from analysis.site.interface import CONSTANTS
from analysis.site.pages import (
    architecture,
    hardware,
    home,
    links,
    machines,
    model,
    reference,
    study_pages,
    walkthrough,
)
from analysis.site.pages import ledger as claim_pages
from analysis.site.pages.agreement import agreement_section
from analysis.site.pages.chart_figures import chart_figure, common_figure
from analysis.site.pages.copies import copy_tables
from analysis.site.pages.counters import walk_tables
from analysis.site.pages.drawings import drawing_figure
from analysis.site.pages.html import link
from analysis.site.pages.measuring import measuring_section
from analysis.site.pages.navigation import JOURNEYS
from analysis.site.pages.page import MACROS, Page, macro, study_macro
from analysis.site.pages.repeatability import repeatability_section
from analysis.site.pages.variants import sections
from analysis.study import ROLES, CaseValue
from analysis.study.config import CONFIG_FILE, Settings

__all__ = ["MACROS", "define_env"]


def define_env(env: Any) -> None:
    """Called by mkdocs-macros; the configuration's `extra.staged` holds what was staged."""
    page = Page(env.conf["extra"]["staged"], env)
    for name, function in MACROS.items():
        env.macro(functools.partial(function, page), name)


@study_macro
def lead(page: Page, facts: StudyFacts) -> str:
    """The study's question, its findings, and its write-up."""
    page.env.page.meta["description"] = escape(study_pages.summary(facts))
    return study_pages.lead(facts)


@study_macro
def chart(page: Page, facts: StudyFacts, name: str, caption: str) -> str:
    """A chart with its selects, its data and a caption.

    name: one of the common charts (`steps`, `cases`, `model`, `agreement`, `timeline`), or of those
        that the study's charts.py returns
    caption: one or two sentences below it
    """
    return chart_figure(page, facts, name, caption)


@study_macro
def drawing(page: Page, facts: StudyFacts, name: str, caption: str) -> str:
    """A drawing of the study's operation, with a caption.

    name: a drawing of the study's drawings.py
    caption: one or two sentences below it
    """
    return drawing_figure(facts, name, caption)


@study_macro
def variants(page: Page, facts: StudyFacts, *roles: str) -> str:
    """A section for each variant: result, idea, code difference, and evidence in folds; a paragraph
    for each variant that no machine could run.

    roles: one or several of `step`, `reference`, `ceiling` and `beyond`
    """
    for role in roles:
        require_known("role", role, ROLES)
    return sections(facts, roles, page.place)


@study_macro
def measured_order(page: Page, facts: StudyFacts) -> str:
    """A sentence for each step that is measurably slower than an earlier one."""
    return study_pages.order(facts)


@study_macro
def headroom(page: Page, facts: StudyFacts, claim: str, bound: str) -> str:
    """The upper limit of a claimed speed-up, a sentence per machine.

    claim: id of a claim of this study
    bound: metric with the upper limit, a factor
    """
    return study_pages.headroom(facts, claim, bound)


@study_macro
def metrics(page: Page, facts: StudyFacts, *roles: str) -> str:
    """A table of every metric of some variants on every machine.

    roles: as of `variants`
    """
    return study_pages.metric_table(facts, roles)


@study_macro
def hosts(page: Page, facts: StudyFacts, variant: str, *others: str) -> str:
    """The speed of one core of the host in each run, beside the rates of some variants.

    variant: name of the variant; rates are of its shown case
    others: names of further variants
    """
    return study_pages.host_table(facts, [variant, *others])


@study_macro
def published(page: Page, facts: StudyFacts) -> str:
    """The write-up's figures in SI units, beside the measured ones."""
    return study_pages.published_table(facts)


@study_macro
def skipped(page: Page, facts: StudyFacts) -> str:
    """Missing results with their reasons: skipped or failed cases, counters, timelines, and tables
    of the code."""
    return study_pages.missing(facts)


@study_macro
def claims(page: Page, facts: StudyFacts, *ids: str) -> str:
    """The claims of the study, with the verdict on each machine.

    ids: some of the claims; all if omitted
    """
    return claim_pages.claims_of(facts, page.place, ids)


@study_macro
def predictions(page: Page, facts: StudyFacts) -> str:
    """The limit of each variant by the link model, and its distance from it."""
    return model.model_table(facts)


@study_macro
def unjudged(page: Page, facts: StudyFacts) -> str:
    """The variants and cases that the link model cannot judge, with the reason."""
    return model.unjudged(facts)


@study_macro
def judgement(page: Page, facts: StudyFacts) -> str:
    """The errors of the link model where the link clearly binds."""
    return model.judgement(facts)


@study_macro
def misses(page: Page, facts: StudyFacts) -> str:
    """The judged points outside the accepted range of the link model."""
    return model.misses(facts)


@study_macro
def rates(
    page: Page, facts: StudyFacts, variant: str, down: str, across: str, *values: CaseValue
) -> str:
    """A variant's rates over two keys of its case, measured or else predicted by the link model.

    variant: name of the variant
    down: case key of the rows
    across: numeric case key of the columns, with all its values
    values: values of the rows
    """
    return model.rate_table(facts, variant, down, across, values)


@study_macro
def counters(page: Page, facts: StudyFacts) -> str:
    """The hardware counters that the link model predicts, beside those counted."""
    return model.counter_table(facts)


@study_macro
def page_table_reads(page: Page, facts: StudyFacts, key: str, each: str) -> str:
    """Reads of page tables by each variant, from hardware counters.

    key: numeric key of the profiled case: reads are also divided by its value
    each: name of one unit of `key`, such as `row`
    """
    return walk_tables(facts, key, each)


@study_macro
def copies(page: Page, facts: StudyFacts) -> str:
    """The load of the copy engine by copies from the host, from timelines."""
    return copy_tables(facts)


@macro
def download(page: Page, name: str) -> str:
    """A link to a table, or to all samples.

    name: name of a file in data/, such as `summary.csv`
    """
    return link(page.address(f"data/{name}"), name)


@macro
def constant(page: Page, name: str) -> str:
    """A constant of the code; shares as percentages, sizes in MiB.

    name: name of a constant in analysis/site/interface.py, such as `CONFIDENCE`
    """
    require_known("constant", name, sorted(CONSTANTS))
    value = CONSTANTS[name]
    if name.endswith("_BYTES"):
        return f"{value / 2**20:g} MiB"
    return f"{value * 100:g} %" if isinstance(value, float) else whole(value)


@macro
def columns(page: Page, file: str) -> str:
    """The columns of a file of results or of a table, in their order.

    file: name of the file in the contract, such as `summary.csv`
    """
    return reference.column_list(file)


@macro
def ledger(page: Page) -> str:
    """Every claim of every study, with the verdict on each machine."""
    return claim_pages.ledger(page.staged.studies, page.staged.pages, page.place)


@macro
def link_parameters(page: Page) -> str:
    """The parameters of the link model on every machine."""
    return model.parameter_table(page.staged.inputs)


@macro
def measuring(page: Page) -> str:
    """The duration of each machine's newest default run, by study."""
    return measuring_section(page.staged.inputs)


@macro
def repeatability(page: Page) -> str:
    """How well the other runs of each machine predict its newest run."""
    return repeatability_section(page.staged.inputs)


@macro
def agreement(page: Page) -> str:
    """The false alarms of the method: differences between two measurements of one program."""
    return agreement_section(page.staged.inputs)


@macro
def journeys(page: Page) -> str:
    """A card for each journey: its steps, their distance from the limit, the largest surprise."""
    return home.cards(page.studies[JOURNEYS], page.study_address)


@macro
def findings(page: Page) -> str:
    """Findings that contradict common beliefs, with figures and evidence, under a heading."""
    every = [facts for group in page.studies.values() for facts in group]
    return home.contradicted_beliefs(every, page.study_address)


@macro
def other_studies(page: Page) -> str:
    """The questions of all other studies, by group."""
    others = {title: group for title, group in page.studies.items() if title != JOURNEYS}
    return home.other_studies(others, page.study_address)


@macro
def freshness(page: Page) -> str:
    """Time and commit of each machine's measurements, and stale results."""
    return machines.freshness(page.staged.inputs)


@macro
def common_chart(page: Page, name: str, caption: str) -> str:
    """A chart about several studies, as `chart`.

    name: `machines` or `links`
    caption: one or two sentences below it
    """
    return common_figure(page, name, caption)


@macro
def machine_pairs(page: Page) -> str:
    """A comparison of every two machines."""
    return hardware.pairs(page.staged.comparison)


@macro
def machine_gaps(page: Page) -> str:
    """Variants that cannot be compared between two machines, with the reason."""
    return hardware.gaps(page.staged.comparison)


@macro
def machine_figures(page: Page) -> str:
    """Every variant's figure on every machine, with its share of that machine's ceiling."""
    return hardware.figures_table(page.staged.comparison)


@macro
def predicted_links(page: Page) -> str:
    """Predicted rates over other links, beside measured ones if there are any."""
    return links.predictions(page.staged.studies)


@macro
def stated_links(page: Page) -> str:
    """The parameters of those links, each with its source."""
    return links.link_parameters(page.staged.studies)


@macro
def machine_differences(page: Page) -> str:
    """Differences and common facts of the machines."""
    return hardware.differences(page.staged.inputs)


@macro
def machine_hosts(page: Page) -> str:
    """The runs of each machine by host, and what differs between the hosts."""
    return hardware.hosts(page.staged.comparison)


@macro
def machine_table(page: Page) -> str:
    """The description of every machine."""
    return machines.machine_table(page.staged.inputs)


@macro
def provenance(page: Page) -> str:
    """Every run of every machine: commit, compiler, number of variants."""
    return machines.provenance_table(page.staged.inputs)


@macro
def samples(page: Page) -> str:
    """Links to the samples of every machine, study and variant."""
    return machines.sample_tables(page.staged.inputs, page.staged.files, page.place)


@macro
def reading_list(page: Page) -> str:
    """The files that a newcomer should read first, each with a link to its text."""
    return walkthrough.reading_list(page.place)


@macro
def sample_path(page: Page) -> str:
    """A picture of the path of one sample, from its kernel to its bar."""
    del page
    return walkthrough.sample_path()


@macro
def parts(page: Page) -> str:
    """Every part of the package by layer, its purpose and its imports."""
    return architecture.part_table(architecture.read_structure())


@macro
def study_keys(page: Page) -> str:
    """Every key of study.yaml, with its type and meaning."""
    return reference.schema_reference(reference.study_schema())


@macro
def setting_keys(page: Page) -> str:
    """Every setting of config.yaml, with its type, meaning and value."""
    return reference.schema_reference(reference.schema_of(Settings), read_yaml(CONFIG_FILE))


@macro
def claim_kinds(page: Page) -> str:
    """Every kind of comparison that a claim may make, with its keys."""
    return reference.claim_kinds()


@macro
def link_keys(page: Page) -> str:
    """The keys of a `link` for each way of reading host memory."""
    return reference.link_keys()


@macro
def macro_list(page: Page) -> str:
    """Every macro, as on this page."""
    return reference.macro_reference(MACROS, given=(Page, StudyFacts))


@macro
def programs(page: Page) -> str:
    """The help text of each program of the package."""
    return reference.program_reference(page.staged.inputs.studies)
